package faults_test

import (
	"testing"
	"time"
)

// pollEvery is the time between two checks.
const pollEvery = 5 * time.Millisecond

// eventually checks until ok is true, and fails the test after testTimeout.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.After(testTimeout)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not true within %v: %s", testTimeout, what)
		}
	}
}
