package faults_test

import (
	"testing"
	"time"
)

// pollEvery is the time between two looks.
const pollEvery = 5 * time.Millisecond

// eventually looks until ok is true, and ends the test when that takes too
// long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not true within %v: %s", patience, what)
		}
	}
}
