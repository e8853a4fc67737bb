//go:build !unix

package testpg

import (
	"errors"
	"os/exec"
)

// owner replaces the Unix owner on systems without Unix users, groups and sockets. There,
// tests use a running server in POSTROOM_TEST_POSTGRES.
type owner struct{}

func serverOwner() (owner, error) {
	return owner{}, errors.New("a private PostgreSQL can only be started on Unix")
}

func (owner) apply(*exec.Cmd) {}

func (owner) makeDir() (string, error) { return "", errors.ErrUnsupported }
