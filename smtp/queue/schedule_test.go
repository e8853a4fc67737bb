package queue

import (
	"testing"
	"time"
)

func TestNextAttempt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name     string
		attempts int
		age      time.Duration
		jitter   float64
		pause    time.Duration // 0: no more attempts
	}{
		{"first", 1, 0, 0, time.Minute},
		{"a tenth later", 1, 0, 1, 66 * time.Second},
		{"a tenth earlier", 2, time.Minute, -1, 270 * time.Second},
		{"third", 3, time.Hour, 0, 15 * time.Minute},
		{"seventh", 7, 8 * time.Hour, 0, 8 * time.Hour},
		{"eighth", 8, 10 * time.Hour, 0, 8 * time.Hour},
		{"the last one at the end of the time", 8, 23 * time.Hour, 0, time.Hour},
		{"over", 9, 24 * time.Hour, 0, 0},
		{"long over", 2, 48 * time.Hour, 0, 0},
		{"the clock went back", 1, -time.Hour, 0, time.Minute},
		{"an attempt that was not counted", 0, 0, 0, time.Minute},
	}
	for _, tt := range tests {
		now := created.Add(tt.age)
		next, ok := nextAttempt(tt.attempts, created.Add(retryFor), now, tt.jitter)
		if ok != (tt.pause > 0) || ok && next.Sub(now) != tt.pause {
			t.Errorf("%s: %v after %s, want after %s", tt.name, ok, next.Sub(now), tt.pause)
		}
	}
}

// Until the message is handed over, an attempt has time for a connection, the banner,
// EHLO, MAIL and RCPT, and DATA, as RFC 5321 section 4.5.3.2 asks for.
func TestAttemptHasTimeForItsSteps(t *testing.T) {
	t.Parallel()
	if sum := 30*time.Second + 4*5*time.Minute + 2*time.Minute; attemptTime < sum {
		t.Errorf("an attempt has %v, and its steps may take %v", attemptTime, sum)
	}
}
