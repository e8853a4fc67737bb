package webhook

import "time"

// retryDelays are the pauses after the first, second, ... failed attempt. After
// one more the delivery has failed.
var retryDelays = [...]time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute,
	2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

const (
	// retryJitter is the part of a pause by which it may be shorter or longer, so
	// that what failed together does not come back together.
	retryJitter = 0.1
	// maxRetryAfter bounds how long an endpoint may ask us to wait.
	maxRetryAfter = 10 * time.Hour
)

// nextAttempt returns when a delivery is tried again after its attempts (1 or
// more) failed for now. ok is false when that was the last one. jitter is from
// -1 to 1. The endpoint may ask for a longer pause, not for a shorter one.
func nextAttempt(attempts int, now time.Time, asked time.Duration, jitter float64) (next time.Time, ok bool) {
	if attempts > len(retryDelays) {
		return time.Time{}, false
	}
	delay := retryDelays[max(attempts, 1)-1]
	delay += time.Duration(jitter * retryJitter * float64(delay))
	return now.Add(max(delay, min(asked, maxRetryAfter))), true
}
