//go:build race && !faults

package handlers_test

// Under the race detector everything takes ten times as long.
const (
	raceRounds      = 240
	manyWaits       = 200
	onceRounds      = 1
	decisionRounds  = 12
	hostileRequests = 300
	forgedLinks     = 1000
)
