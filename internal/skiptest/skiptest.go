// Package skiptest says when a test may be left out: on somebody's machine that
// lacks what it needs, and never in CI, where leaving it out would look like
// passing.
package skiptest

import (
	"os"
	"strconv"
	"testing"
)

// OutsideCI leaves the test out, for that reason. Where the variable CI is set,
// and is not a word for no, it fails the test instead.
func OutsideCI(t testing.TB, why string) {
	t.Helper()
	ci := os.Getenv("CI")
	if yes, err := strconv.ParseBool(ci); yes || err != nil && ci != "" { // some systems put their name there
		t.Fatal(why)
	}
	t.Skip(why)
}
