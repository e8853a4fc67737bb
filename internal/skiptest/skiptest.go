// Package skiptest skips tests for which the machine lacks something. It does so only
// outside of CI, because a skipped test in CI looks like a passed one.
package skiptest

import (
	"os"
	"strconv"
	"testing"
)

// OutsideCI skips the test with that reason. If the variable CI is set and does not mean
// false, it fails the test instead.
func OutsideCI(t testing.TB, why string) {
	t.Helper()
	ci := os.Getenv("CI")
	if yes, err := strconv.ParseBool(ci); yes || err != nil && ci != "" { // some CI systems set it to their name
		t.Fatal(why)
	}
	t.Skip(why)
}
