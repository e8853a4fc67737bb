// Package cputime measures what a test costs in time of the processor, which
// unlike the time on the clock does not grow with the work of others on the
// machine. It counts the whole process: a test that uses it must not run beside
// others of its package.
package cputime

import (
	"testing"
	"time"
)

// least returns the least that work has cost of three times, since what else
// the processor does slows it too.
func least(work func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		begin := Used()
		work()
		best = min(best, Used()-begin)
	}
	return best
}

// AtMost fails a test whose work costs more than limit. The race detector makes
// everything slow: under it the work is done once, and not measured.
func AtMost(t *testing.T, limit time.Duration, work func()) {
	t.Helper()
	if RaceDetector {
		work()
		return
	}
	if took := least(work); took > limit {
		t.Errorf("took %s of the processor, more than %s", took, limit)
	}
}
