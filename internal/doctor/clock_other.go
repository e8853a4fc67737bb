//go:build !linux

package doctor

// kernelClock is not implemented on this system.
func kernelClock() (synced, known bool) { return false, false }
