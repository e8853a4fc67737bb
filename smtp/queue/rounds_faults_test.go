//go:build faults

package queue_test

const crowdOfDead, amongDead = 10_000, 1000
