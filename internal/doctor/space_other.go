//go:build !linux && !darwin

package doctor

import "errors"

func freeSpace(string) (space, error) {
	return space{}, errors.New("not supported on this system")
}
