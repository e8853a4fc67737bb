//go:build !race

package cputime

// RaceDetector tells that the race detector makes everything slow.
const RaceDetector = false
