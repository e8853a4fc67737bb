//go:build !linux

package doctor

// kernelClock is unavailable on this system.
func kernelClock() (synced, known bool) { return false, false }
