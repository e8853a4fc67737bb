//go:build faults

package webhook_test

const (
	queuedForHanging = 10_000
	healthyEvents    = 1000
	rebinds          = 1000
	verifiedEvents   = 1000
)
