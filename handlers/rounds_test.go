//go:build !faults && !race

package handlers_test

const (
	// raceRounds is how often the arrival of a message races with the wait for
	// it.
	raceRounds = 800
	// manyWaits is the number of concurrent waits.
	manyWaits = 1000
	// onceRounds is how often equal concurrent calls are made per operation.
	onceRounds = 2
	// decisionRounds is how often two decisions about a draft race.
	decisionRounds = 10
	// hostileRequests is the number of invalid requests per database.
	hostileRequests = 2000
	// parallelSends is the number of sends at the same time against a budget.
	parallelSends = 80
	// sendBudget is that budget.
	sendBudget = 20
	// forgedLinks is the number of forged links.
	forgedLinks = 10_000
	// stopRounds is how often sending is stopped while all nodes send.
	stopRounds = 1
)
