//go:build faults

package store_test

const (
	rowsThatComeAndGo = 10_000
	undoRounds        = 1000
	callsWhileCut     = 480
	wakeRounds        = 4000
)
