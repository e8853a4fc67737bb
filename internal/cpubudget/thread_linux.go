package cpubudget

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time of the current thread. The caller must
// have locked its goroutine to the thread to compare two results.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
