// Package waittest waits in tests for conditions. It pauses between two checks, so that
// the wait does not take the processor from what it waits for.
package waittest

import (
	"testing"
	"time"
)

const (
	// timeout is long enough for a busy machine. A test that fails waits in vain.
	timeout = time.Minute
	every   = 10 * time.Millisecond
)

// Until waits until ok returns true, and fails the test if that takes too long. what
// describes the condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	late := time.After(timeout)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", timeout, what)
		}
	}
}
