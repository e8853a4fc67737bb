//go:build !unix

package cputime

import "time"

var started = time.Now()

// Used returns the time on the wall clock, on systems without a process clock.
func Used() time.Duration { return time.Since(started) }
