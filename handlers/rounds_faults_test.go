//go:build faults

package handlers_test

const (
	raceRounds      = 10_000
	manyWaits       = 1000
	onceRounds      = 250 // 1,000 and more with all operations
	decisionRounds  = 2000
	hostileRequests = 50_000
	parallelSends   = 1000
	sendBudget      = 50
	forgedLinks     = 50_000
	stopRounds      = 20
	eachDoorAlone   = true
)
