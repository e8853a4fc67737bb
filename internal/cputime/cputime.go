// Package cputime measures the processor time of a test, which other work on the machine
// affects less than the time on the wall clock. It counts the whole process, so a test that
// uses it must not run in parallel with others of its package.
package cputime

import (
	"testing"
	"time"
)

// least returns the lowest cost of work in three runs, because other work slows the
// processor.
func least(work func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		begin := Used()
		work()
		best = min(best, Used()-begin)
	}
	return best
}

// AtMost fails a test whose work costs more than limit. Under the race detector, which makes
// everything slow, it runs the work once and does not measure it.
func AtMost(t *testing.T, limit time.Duration, work func()) {
	t.Helper()
	if RaceDetector {
		work()
		return
	}
	if took := least(work); took > limit {
		t.Errorf("took %s of processor time, want at most %s", took, limit)
	}
}
