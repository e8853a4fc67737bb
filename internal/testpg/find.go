package testpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// minVersion is the oldest PostgreSQL that Postroom supports.
const minVersion = 15

// ErrNotFound means that this machine has no PostgreSQL server programs of a
// version that Postroom supports.
var ErrNotFound = errors.New("PostgreSQL server programs not found")

// binGlobs are the folders where packages put initdb and pg_ctl when they do
// not put them on the PATH.
var binGlobs = []string{
	"/usr/lib/postgresql/*/bin",                               // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                        // PGDG on Fedora, RHEL
	"/usr/libexec/postgresql*",                                // Alpine
	"/opt/homebrew/opt/postgresql*/bin",                       // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",                          // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",          // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/latest/bin", // Postgres.app
	"/usr/local/pgsql/bin",                                    // built from source
}

// Find returns the folder with the newest initdb, pg_ctl and postgres on this machine,
// and their major version. If POSTROOM_TEST_POSTGRES_BIN is set, Find checks only that
// folder. It returns ErrNotFound when it finds none, or only folders with
// versions that are too old.
func Find(ctx context.Context) (bin string, version int, err error) {
	return newest(ctx, binDirs())
}

func newest(ctx context.Context, dirs []string) (bin string, version int, err error) {
	var seen []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue // a relative folder would depend on the working folder
		}
		v, err := serverVersion(ctx, dir)
		if err != nil {
			continue // not all programs are in this folder
		}
		seen = append(seen, fmt.Sprintf("version %d in %s", v, dir))
		if v > version {
			bin, version = dir, v
		}
	}
	switch {
	case version >= minVersion:
		return bin, version, nil
	case len(seen) > 0:
		return "", 0, fmt.Errorf("%w: need version %d or newer, have %s", ErrNotFound, minVersion, strings.Join(seen, ", "))
	default:
		return "", 0, fmt.Errorf("%w: no folder with initdb, pg_ctl and postgres", ErrNotFound)
	}
}

func binDirs() []string {
	if only := os.Getenv("POSTROOM_TEST_POSTGRES_BIN"); only != "" {
		return []string{only}
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, glob := range binGlobs {
		found, _ := filepath.Glob(glob) // fails only on a malformed pattern
		dirs = append(dirs, found...)
	}
	return dirs
}

// serverVersion returns the major version of the server in dir.
func serverVersion(ctx context.Context, dir string) (int, error) {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return 0, err
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("get the version of %s: %w", dir, err)
	}
	return parseVersion(string(out))
}

// parseVersion extracts the major version from "postgres (PostgreSQL) 17.2
// (Debian 17.2-1)".
func parseVersion(out string) (int, error) {
	_, rest, ok := strings.Cut(out, "(PostgreSQL) ")
	digits := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = rest[:i]
	}
	major, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("not a PostgreSQL version: %q", out)
	}
	return major, nil
}
