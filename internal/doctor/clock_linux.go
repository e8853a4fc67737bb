package doctor

import "syscall"

// unsynchronized is the kernel's mark of a clock that nothing keeps right:
// STA_UNSYNC of adjtimex(2).
const unsynchronized = 0x40

// kernelClock asks the kernel whether something keeps its clock right.
func kernelClock() (synced, known bool) {
	var t syscall.Timex // without modes it only reads
	if _, err := syscall.Adjtimex(&t); err != nil {
		return false, false
	}
	return t.Status&unsynchronized == 0, true
}
