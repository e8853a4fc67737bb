//go:build !faults

package store_test

const (
	// rowsThatComeAndGo is how many messages are stored, and deleted again, while
	// lists are read.
	rowsThatComeAndGo = 40
	// undoRounds is how often an approval, its undo and an edit race.
	undoRounds = 200
	// callsWhileCut is how many messages each sender stores while connections are cut.
	callsWhileCut = 24
	// wakeRounds is how often an arrival races with the wait for it.
	wakeRounds = 800
)
