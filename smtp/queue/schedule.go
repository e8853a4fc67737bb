package queue

import (
	"time"

	"github.com/postroom/postroom/store"
)

// retryDelays are the pauses after the first, second, ... failed attempt; the
// last one repeats.
var retryDelays = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
}

const (
	// retryFor is how long after it was queued a mail is tried, and
	// retryMarketingFor for marketing, which nobody waits for.
	retryFor          = 24 * time.Hour
	retryMarketingFor = 72 * time.Hour
	// retryJitter is the part of a pause by which it may be shorter or longer,
	// so that what failed together does not come back together.
	retryJitter = 0.1
)

// retriesEnd is when the last attempt for a recipient is made.
func retriesEnd(c store.Claimed) time.Time {
	if c.Category == store.CategoryMarketing {
		return c.CreatedAt.Add(retryMarketingFor)
	}
	return c.CreatedAt.Add(retryFor)
}

// nextAttempt returns when a recipient is tried again after its attempts (1 or
// more) failed for now. ok is false when that was the last one: the very last is
// made at end. jitter is from -1 to 1.
func nextAttempt(attempts int, end, now time.Time, jitter float64) (next time.Time, ok bool) {
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
