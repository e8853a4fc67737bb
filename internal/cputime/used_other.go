//go:build !unix

package cputime

import "time"

var started = time.Now()

// Used is the time of the clock where that of the processor cannot be had.
func Used() time.Duration { return time.Since(started) }
