//go:build !faults

package webhook_test

const (
	// queuedForHanging is how many events wait for each endpoint that hangs.
	queuedForHanging = 40
	// healthyEvents is how many events a healthy one is told of meanwhile.
	healthyEvents = 200
	// rebinds is how often a name points elsewhere when it is dialled.
	rebinds = 50
	// verifiedEvents is how many posts the libraries of others verify.
	verifiedEvents = 1000
)
