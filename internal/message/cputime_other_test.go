//go:build !unix

package message

import "time"

// cpuTime returns the time of the clock where that of the processor cannot be
// had.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
