//go:build !darwin && !linux

package main

import "math"

// maxFiles returns how many files and connections this process may have open at once.
// On this system the limit is unknown.
func maxFiles() int { return math.MaxInt32 }
