//go:build !faults

package queue_test

const (
	// crowdOfDead is how much mail for dead domains there is, and amongDead how
	// much for good ones beside it.
	crowdOfDead, amongDead = 1000, 200
)
