//go:build !unix

package cputime

import "time"

var started = time.Now()

// used is the time of the clock where that of the processor cannot be had.
func used() time.Duration { return time.Since(started) }
