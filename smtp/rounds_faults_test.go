//go:build faults

package smtp_test

const crowdOfDead, amongDead = 10_000, 1000
