package queue

import (
	"time"

	"github.com/postroom/postroom/store"
)

// retriesEnd returns the time of the last attempt for a recipient.
func retriesEnd(c store.Claimed) time.Time {
	if c.Category == store.CategoryMarketing {
		return c.CreatedAt.Add(retryMarketingFor)
	}
	return c.CreatedAt.Add(retryFor)
}

// nextAttempt returns the time of the next attempt after attempts (1 or more)
// transient failures. The last attempt is at end; ok is false after it. jitter is
// from -1 to 1.
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
