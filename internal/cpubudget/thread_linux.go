package cpubudget

import (
	"syscall"
	"time"
	"unsafe"
)

// clockThread is CLOCK_THREAD_CPUTIME_ID.
const clockThread = 3

// ThreadTime returns the processor time of the current thread. The caller must
// have locked its goroutine to the thread to compare two results.
func ThreadTime() time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&t)), 0); errno != 0 { //nolint:gosec // the kernel fills t in
		return 0
	}
	return time.Duration(t.Nano())
}
