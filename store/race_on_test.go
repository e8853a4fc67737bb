//go:build race

package store_test

// raceDetector makes everything about ten times slower.
const raceDetector = true
