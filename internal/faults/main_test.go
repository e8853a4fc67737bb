package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the path of the program under test, which TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "postroom-faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system's to clean up otherwise
	program = filepath.Join(dir, "postroom")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "github.com/postroom/postroom/cmd/postroom")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "faults: build the program:", err)
		return 1
	}
	return m.Run()
}

// pick returns how much a test does: little in the short form, much in the
// full one.
func pick[T any](short, long T) T {
	if full {
		return long
	}
	return short
}
