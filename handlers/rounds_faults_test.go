//go:build faults

package handlers_test

const (
	raceRounds = 10_000
	manyWaits  = 1000
)
