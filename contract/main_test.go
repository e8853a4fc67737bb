package contract_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/testprogram"
)

// program is the path of the tested program.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "postroom-contract-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans up otherwise
	if program, err = testprogram.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		return 1
	}
	code := m.Run()
	if testing.Verbose() {
		fmt.Printf("contract: %d exchanges held against the contract\n", exchanges.Load())
	}
	return code
}

// exchanges counts those of all finished tests.
var exchanges atomic.Int64

var document = sync.OnceValues(func() (*openapi3.T, error) { return contractcheck.Load("../gen/openapi.json") })

// newChecker returns a new checker of the contract.
func newChecker(t *testing.T) *contractcheck.Checker {
	t.Helper()
	doc, err := document()
	must(t, err)
	c, err := contractcheck.New(doc)
	must(t, err)
	t.Cleanup(func() { exchanges.Add(int64(c.Exchanges())) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
