//go:build !linux

package cpubudget

import "time"

var start = time.Now()

// ThreadTime returns the time on the wall clock, because this system has no
// clock of a thread that Go can read.
func ThreadTime() time.Duration { return time.Since(start) }
