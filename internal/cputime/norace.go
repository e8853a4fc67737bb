//go:build !race

package cputime

// RaceDetector reports whether the race detector is on, which makes everything slow.
const RaceDetector = false
