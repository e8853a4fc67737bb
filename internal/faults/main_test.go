package faults_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
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
	defer func() { _ = os.RemoveAll(dir) }() // otherwise the system cleans up
	go exchanges.Ready()                     // while the program compiles
	program = filepath.Join(dir, "postroom")
	if err := build(program); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	code := m.Run()
	return exchanges.End(os.Stderr, "internal/faults", testing.Verbose(), code)
}

// exchanges checks the exchanges with the API of the programs under test. There are
// so many that checking each would slow down the clients and weaken the faults.
var exchanges = contractcheck.NewSuite("../../gen/openapi.json", 100)

// build builds the released program with additional flags.
func build(path string, flags ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "github.com/postroom/postroom/cmd/postroom")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w: %s", err, out)
	}
	return nil
}

// pick returns the size of a test: short in the short form, long in the full form.
func pick[T any](short, long T) T {
	if full {
		return long
	}
	return short
}
