package testpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, out string
		want      int
		fails     bool
	}{
		{name: "a release of a distribution", out: "postgres (PostgreSQL) 17.2 (Debian 17.2-1)\n", want: 17},
		{name: "a plain release", out: "postgres (PostgreSQL) 15.18\n", want: 15},
		{name: "a beta", out: "postgres (PostgreSQL) 19beta1\n", want: 19},
		{name: "another program", out: "initdb 17.2\n", fails: true},
		{name: "nothing", out: "", fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseVersion(tt.out)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("parseVersion(%q) = %d, %v", tt.out, got, err)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()

	t.Run("the newest of several wins", func(t *testing.T) {
		t.Parallel()
		old, recent := fakeServer(t, 15), fakeServer(t, 18)
		bin, version, err := newest(t.Context(), []string{t.TempDir(), recent, old})
		if bin != recent || version != 18 || err != nil {
			t.Errorf("got %s, %d, %v", bin, version, err)
		}
	})
	t.Run("a server that is too old is named", func(t *testing.T) {
		t.Parallel()
		_, _, err := newest(t.Context(), []string{fakeServer(t, 13)})
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "version 13 in /") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a folder without all programs is skipped", func(t *testing.T) {
		t.Parallel()
		dir := fakeServer(t, 18)
		if err := os.Remove(filepath.Join(dir, "pg_ctl")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := newest(t.Context(), []string{dir}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a relative folder is never used", func(t *testing.T) {
		t.Parallel()
		if _, _, err := newest(t.Context(), []string{"", ".", "bin"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// fakeServer creates a folder of server programs that only print their version.
func fakeServer(t *testing.T, version int) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.4'\n", version)
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
