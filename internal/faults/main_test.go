package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/testprogram"
)

// program is the path of the program under test. withCrashpoints builds it with points
// at which a test can stop it, and a clock that a test can set.
var (
	program         string
	withCrashpoints func() (string, error)
)

func TestMain(m *testing.M) {
	if options := os.Getenv(powerVariable); options != "" {
		os.Exit(servePower(options))
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "postroom-faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // otherwise the system cleans up
	go exchanges.Ready()                     // while the program compiles
	withCrashpoints = sync.OnceValues(func() (string, error) {
		return testprogram.BuildWith(filepath.Join(dir, "crashpoints"), "-tags", "crashpoints")
	})
	if program, err = testprogram.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 1
	}
	code := m.Run()
	return exchanges.End(os.Stderr, "internal/faults", testing.Verbose(), code)
}

// exchanges checks the exchanges with the API of the programs under test. There are
// so many that checking each would slow down the clients and weaken the faults.
var exchanges = contractcheck.NewSuite("../../gen/openapi.json", 100)

// pick returns the size of a test: short in the short form, long in the full form.
func pick[T any](short, long T) T {
	if full {
		return long
	}
	return short
}
