package webhook

import "time"

// retryDelays are the delays after each failed attempt. The delivery fails when
// the attempt after the last delay fails.
var retryDelays = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

const (
	// retryJitter is the maximum relative change of a delay, so that deliveries
	// that failed together are not all retried at once.
	retryJitter = 0.1
	// maxRetryAfter limits the delay that an endpoint may request.
	maxRetryAfter = 10 * time.Hour
)

// nextAttempt returns when to retry a delivery after the given number of failed
// attempts (1 or more). ok is false if no attempt is left. jitter is from -1 to
// 1. asked is the delay that the endpoint requests; it can only lengthen the
// delay.
func nextAttempt(attempts int, now time.Time, asked time.Duration, jitter float64) (next time.Time, ok bool) {
	if attempts > len(retryDelays) {
		return time.Time{}, false
	}
	delay := retryDelays[max(attempts, 1)-1]
	delay += time.Duration(jitter * retryJitter * float64(delay))
	return now.Add(max(delay, min(asked, maxRetryAfter))), true
}
