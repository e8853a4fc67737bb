//go:build !faults && !race

package handlers_test

const (
	// raceRounds is how often the arrival of a message races with the wait for
	// it.
	raceRounds = 400
	// manyWaits is the number of concurrent waits.
	manyWaits = 300
	// onceRounds is how often equal concurrent calls are made per operation.
	onceRounds = 2
	// decisionRounds is how often two decisions about a draft race.
	decisionRounds = 10
	// hostileRequests is the number of invalid requests per database.
	hostileRequests = 1000
	// parallelSends is the number of sends at the same time against a budget.
	parallelSends = 80
	// sendBudget is that budget.
	sendBudget = 20
	// forgedLinks is the number of forged links.
	forgedLinks = 2000
	// eachDoorAlone makes a budget be spent through each way to send alone, before all mixed.
	eachDoorAlone = false
	// stopRounds is how often sending is stopped while all nodes send.
	stopRounds = 1
)
