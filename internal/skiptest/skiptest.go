// Package skiptest skips tests for which the machine lacks something, and tests that the
// race detector only makes slow.
package skiptest

import (
	"os"
	"strconv"
	"testing"

	"github.com/postroom/postroom/internal/cputime"
)

// OutsideCI skips the test with that reason. If the variable CI is set and does not mean
// false, it fails the test instead, because a skipped test in CI looks like a passed one.
func OutsideCI(t testing.TB, why string) {
	t.Helper()
	ci := os.Getenv("CI")
	if yes, err := strconv.ParseBool(ci); yes || err != nil && ci != "" { // some CI systems set it to their name
		t.Fatal(why)
	}
	t.Skip(why)
}

// UnderRace skips a test that makes one call after another, when the race detector is on.
// `make test` runs it.
func UnderRace(t testing.TB) {
	t.Helper()
	if cputime.RaceDetector {
		t.Skip("it does nothing at the same time")
	}
}
