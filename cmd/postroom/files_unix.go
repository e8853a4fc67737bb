//go:build darwin || linux

package main

import (
	"math"
	"syscall"
)

// maxFiles returns how many files and connections this process may have open at once.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32)) //nolint:gosec // it fits
}
