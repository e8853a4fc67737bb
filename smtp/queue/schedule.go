package queue

import (
	"time"

	"github.com/postroom/postroom/store"
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
