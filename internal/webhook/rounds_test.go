//go:build !faults

package webhook_test

const (
	// queuedForHanging is the number of events that wait for each hanging
	// endpoint.
	queuedForHanging = 40
	// healthyEvents is the number of events for a healthy endpoint.
	healthyEvents = 200
	// rebinds is how often a name changes its address before it is dialed.
	rebinds = 50
	// verifiedEvents is the number of requests that independent libraries
	// verify.
	verifiedEvents = 1000
)
