package webhook

import (
	"testing"
	"time"
)

func TestPausesStayWithinTheirJitter(t *testing.T) { // W10
	t.Parallel()
	now := time.Date(2026, 9, 23, 12, 0, 0, 0, time.UTC)
	for i, pause := range retryDelays {
		for jitter, factor := range map[float64]float64{-1: 0.9, 0: 1, 1: 1.1} {
			next, ok := nextAttempt(i+1, now, 0, jitter)
			want := time.Duration(float64(pause) * factor)
			if got := next.Sub(now); !ok || (got-want).Abs() > time.Millisecond {
				t.Errorf("after %d attempts with jitter %v: %v %v, want %v", i+1, jitter, got, ok, want)
			}
		}
	}
	if next, ok := nextAttempt(len(retryDelays)+1, now, time.Hour, 0); ok {
		t.Errorf("after the last attempt there is another at %v", next)
	}
}
