//go:build !darwin && !linux

package httpserver

import "math"

// MaxFiles returns how many files and connections this process may have open at once.
// On this system the limit is unknown.
func MaxFiles() int { return math.MaxInt32 }
