//go:build !linux

package engine

// connectionMutexesOff is for Linux, where it is measured and tested.
func connectionMutexesOff() bool { return false }

// logVFS is for Linux, as above.
func logVFS() string { return "" }
