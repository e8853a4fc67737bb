package faults_test

import (
	"os"
	"strconv"
	"testing"
)

// skipOutsideCI leaves a test out that the machine cannot do; in CI that is a
// failure.
func skipOutsideCI(t *testing.T, why string) {
	t.Helper()
	ci := os.Getenv("CI")
	if yes, err := strconv.ParseBool(ci); yes || err != nil && ci != "" { // some systems put their name there
		t.Fatal(why)
	}
	t.Skip(why)
}
