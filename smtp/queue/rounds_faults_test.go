//go:build faults

package queue_test

const crowdOfDead, amongDead = 10_000, 1000

// stopRounds is how often sending is stopped while three nodes send.
const stopRounds = 20
