//go:build unix

package message

import (
	"syscall"
	"time"
)

// cpuTime returns the time that the processor has spent on this process, which
// unlike that of the clock does not count the work of others.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
