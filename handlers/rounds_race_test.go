//go:build race && !faults

package handlers_test

// The race detector makes everything ten times slower.
const (
	raceRounds      = 240
	manyWaits       = 200
	onceRounds      = 1
	decisionRounds  = 12
	hostileRequests = 300
	parallelSends   = 60
	sendBudget      = 20
	forgedLinks     = 1000
	stopRounds      = 1
	eachDoorAlone   = false
)
