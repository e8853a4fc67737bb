//go:build !crashpoints

// Package testclock is the clock of the program. In the program as it is built
// and released it is time.Now. Only the build tag crashpoints, which the tests
// build a program of their own with, lets an environment variable move it.
package testclock

import "time"

// Now returns the time.
func Now() time.Time { return time.Now() }
