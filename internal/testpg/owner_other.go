//go:build !unix

package testpg

import (
	"errors"
	"os/exec"
)

// owner stands in where the server's user, group and socket of Unix do not
// exist; tests name a running server in POSTROOM_TEST_POSTGRES instead.
type owner struct{}

func serverOwner() (owner, error) {
	return owner{}, errors.New("a private PostgreSQL can be started on Unix only")
}

func (owner) apply(*exec.Cmd) {}

func (owner) makeDir() (string, error) { return "", errors.ErrUnsupported }
