package engine

import (
	"testing"
	"time"
)

// A measurement that took long is off by up to half of that. A better one replaces it,
// although the difference is too small for a correction otherwise.
func TestClockKeepsTheBestMeasurement(t *testing.T) {
	t.Parallel()
	c := Clock{Node: time.Now}
	off := func() time.Duration { return time.Since(c.Now()).Abs() }
	slow := time.Now().Add(-80 * time.Millisecond)
	c.Measured(slow, slow, slow) // the response was late
	if late := off(); late < 30*time.Millisecond {
		t.Fatalf("the clock is off by %v, want about 40 ms", late)
	}
	now := time.Now()
	c.Measured(now, now, now)
	if late := off(); late > 5*time.Millisecond {
		t.Errorf("after a better measurement the clock is off by %v", late)
	}
	c.Measured(slow, slow, slow)
	if late := off(); late > 5*time.Millisecond {
		t.Errorf("after a worse measurement the clock is off by %v", late)
	}
}
