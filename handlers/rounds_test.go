//go:build !faults && !race

package handlers_test

const (
	// raceRounds is how often mail races with the wait for it.
	raceRounds = 800
	// manyWaits is how many clients wait at once.
	manyWaits = 1000
	// onceRounds is how often equal calls are made at once, for each operation.
	onceRounds = 5
	// decisionRounds is how often two decisions about a draft race.
	decisionRounds = 30
	// hostileRequests is how many requests are made that hold what does not belong there, on each database.
	hostileRequests = 1000
	// forgedLinks is how many links are made up.
	forgedLinks = 10_000
)
