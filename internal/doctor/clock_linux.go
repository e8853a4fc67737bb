package doctor

import "syscall"

// unsynchronized is the kernel's flag for an unsynchronized clock: STA_UNSYNC of
// adjtimex(2).
const unsynchronized = 0x40

// kernelClock asks the kernel whether its clock is synchronized.
func kernelClock() (synced, known bool) {
	var t syscall.Timex // zero modes: read only
	if _, err := syscall.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unsynchronized == 0, true
}
