//go:build !linux && !darwin

package disk

import "errors"

// Left returns an error: the free space is not known on this system.
func Left(string) (Space, error) {
	return Space{}, errors.New("not supported on this system")
}
