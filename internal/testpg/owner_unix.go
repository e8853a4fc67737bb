//go:build unix

package testpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSocketDir leaves room for "/.s.PGSQL.5432" in the 104 bytes that a Unix
// socket address has on macOS (108 on Linux).
const maxSocketDir = 85

// owner is the user that the server runs as: the current user, or an unprivileged user if
// that is root, because initdb and postgres refuse to run as root.
type owner struct {
	drop     bool
	uid, gid uint32
}

// serverOwner prefers the user "nobody" to "postgres", which may own the files of a real
// server on the same machine.
func serverOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"nobody", "postgres"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return owner{}, fmt.Errorf("user %s: %w", name, err)
		}
		return owner{drop: true, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return owner{}, errors.New("PostgreSQL does not run as root, and neither the user nobody nor postgres exists")
}

// apply makes cmd run as the owner, in its own process group, so that a Ctrl-C in the
// terminal stops the tests and not their server.
func (o owner) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if o.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	}
}

// makeDir creates the server's folder, which only its owner may enter.
func (o owner) makeDir() (string, error) {
	dir, err := os.MkdirTemp(o.tempRoot(), "postroom-pg-")
	if err != nil {
		return "", err
	}
	if o.drop {
		if err := os.Chown(dir, int(o.uid), int(o.gid)); err != nil {
			return "", errors.Join(err, os.Remove(dir))
		}
	}
	return dir, nil
}

// tempRoot returns the user's temporary folder, or /tmp if a socket path below it would be
// too long or the owner could not reach it.
func (o owner) tempRoot() string {
	const fallback, own = "/tmp", len("/postroom-pg-4294967295")
	root := os.TempDir()
	if len(root)+own > maxSocketDir || !filepath.IsAbs(root) {
		return fallback
	}
	for dir := root; o.drop && dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return fallback
		}
	}
	return root
}
