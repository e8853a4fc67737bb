// Package testprogram builds postroom for the tests that run it.
package testprogram

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// pathVar names the variable with the path of a program that is already built. The
// Makefile builds it once for all packages.
const pathVar = "POSTROOM_TEST_PROGRAM"

// Build returns the path of the program, which it builds in dir unless there is one.
// The program has no race detector, which would slow it down.
func Build(dir string) (string, error) {
	if path := os.Getenv(pathVar); path != "" {
		_, err := os.Stat(path) // also tells `go test` that the results depend on it
		return path, err
	}
	return BuildWith(dir)
}

// BuildWith builds the program in dir with more flags of `go build`.
func BuildWith(dir string, flags ...string) (string, error) {
	path := filepath.Join(dir, "postroom")
	args := append([]string{"build", "-buildvcs=false", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "github.com/postroom/postroom/cmd/postroom")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, out)
	}
	return path, nil
}
