package smtp

import "time"

// retryDelays are the pauses after the first, second, ... failed attempt; the
// last one repeats.
var retryDelays = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
}

const (
	// retryFor is how long after it was accepted a mail is tried.
	retryFor = 24 * time.Hour
	// retryJitter is the part of a pause by which it may be shorter or longer,
	// so that what failed together does not come back together.
	retryJitter = 0.1
)

// nextAttempt returns when a recipient, accepted at created, is tried again
// after its attempts (1 or more) failed for now. ok is false when that was the
// last one: the very last is made when retryFor is over. jitter is from -1 to 1.
func nextAttempt(attempts int, created, now time.Time, jitter float64) (next time.Time, ok bool) {
	end := created.Add(retryFor)
	if !now.Before(end) {
		return time.Time{}, false
	}
	delay := retryDelays[min(max(attempts, 1), len(retryDelays))-1]
	next = now.Add(delay + time.Duration(jitter*retryJitter*float64(delay)))
	if next.After(end) {
		next = end
	}
	return next, true
}
