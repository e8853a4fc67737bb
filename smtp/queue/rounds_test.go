//go:build !faults

package queue_test

const (
	// crowdOfDead is the number of messages for unreachable domains, and
	// amongDead for working ones beside them.
	crowdOfDead, amongDead = 1000, 200
)

// stopRounds is how often sending is stopped while three nodes send.
const stopRounds = 3
