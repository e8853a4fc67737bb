//go:build !crashpoints

// Package testclock is the clock of the program. In the released program it is time.Now.
// Only with the build tag crashpoints, which the tests use, can an environment variable move
// it.
package testclock

import "time"

// Now returns the time.
func Now() time.Time { return time.Now() }
