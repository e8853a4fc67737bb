package work_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/internal/work"
)

// clock returns a function that returns the time since the start of the test.
func clock() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

func TestEveryRunsAtTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		now := clock()
		var starts []time.Duration
		work.Every(ctx, time.Minute, func(ctx context.Context) {
			starts = append(starts, now())
			work.Pause(ctx, 10*time.Second, nil) // a round does not move the next one
		})
		if now() != time.Hour {
			t.Errorf("Every returned after %s, want 1h", now())
		}
		if starts[0] != 0 {
			t.Errorf("the first round started after %s, want at once", starts[0])
		}
		if n := len(starts); n < 60 || n > 68 {
			t.Errorf("%d rounds in an hour, want 60 to 68", n)
		}
		var gaps []time.Duration
		for i, at := range starts[1:] {
			gaps = append(gaps, at-starts[i])
		}
		slices.Sort(gaps)
		if shortest, longest := gaps[0], gaps[len(gaps)-1]; shortest < 54*time.Second || longest > time.Minute || longest-shortest < time.Second {
			t.Errorf("the gaps are %s to %s, want them spread over 54s to 1m", shortest, longest)
		}
	})
}

func TestEveryFollowsALongRoundAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute+30*time.Second)
		defer cancel()
		rounds := 0
		work.Every(ctx, time.Second, func(context.Context) { rounds++; time.Sleep(time.Minute) })
		if rounds != 10 {
			t.Errorf("%d rounds of one minute in 9m30s, want 10", rounds)
		}
	})
}

func TestDueRunsWhenDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		now := clock()
		waits := []time.Duration{time.Second, 0, -time.Second, time.Hour, time.Minute}
		var starts []time.Duration
		work.Due(ctx, func(context.Context) time.Duration {
			starts = append(starts, now())
			if len(starts) == len(waits) {
				cancel()
			}
			return waits[len(starts)-1]
		}, nil, nil)
		want := []time.Duration{0, time.Second, time.Second, time.Second, time.Second + time.Hour}
		if !slices.Equal(starts, want) {
			t.Errorf("the rounds started after %v, want %v", starts, want)
		}
	})
}

func TestDueRunsAtAKick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		now := clock()
		kick, also := make(chan struct{}, 1), make(chan struct{})
		go func() {
			time.Sleep(time.Minute)
			kick <- struct{}{}
			time.Sleep(time.Minute)
			also <- struct{}{}
			time.Sleep(time.Minute)
			kick <- struct{}{} // during a round: the next one follows it
			time.Sleep(time.Minute)
			close(kick)
			close(also)
		}()
		var starts []time.Duration
		work.Due(ctx, func(context.Context) time.Duration {
			starts = append(starts, now())
			if now() == 2*time.Minute {
				time.Sleep(90 * time.Second)
			}
			return 40 * time.Minute
		}, kick, also)
		// Each closed channel causes one more round, not an endless number.
		want := []time.Duration{0, time.Minute, 2 * time.Minute, 210 * time.Second, 4 * time.Minute, 4 * time.Minute, 44 * time.Minute}
		if !slices.Equal(starts, want) {
			t.Errorf("the rounds started after %v, want %v", starts, want)
		}
	})
}

func TestDueDoesNotStartAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	work.Due(ctx, func(context.Context) time.Duration { t.Error("a round ran"); return 0 }, nil, nil)
}

func TestOnKickRunsOnceForEachKick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		now := clock()
		kick := make(chan struct{}, 1)
		go func() {
			for _, wait := range []time.Duration{time.Minute, time.Second, 20 * time.Minute} {
				time.Sleep(wait)
				kick <- struct{}{}
			}
		}()
		var starts []time.Duration
		work.OnKick(ctx, kick, 10*time.Second, func(context.Context) { starts = append(starts, now()) })
		want := []time.Duration{time.Minute, 70 * time.Second, 21*time.Minute + time.Second}
		if !slices.Equal(starts, want) || now() != time.Hour {
			t.Errorf("the rounds started after %v and the loop ended after %s, want %v and 1h", starts, now(), want)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := clock()
		if !work.Pause(t.Context(), time.Minute, nil) || now() != time.Minute {
			t.Errorf("Pause ended after %s, want 1m and true", now())
		}
		kick := make(chan struct{}, 1)
		kick <- struct{}{}
		if !work.Pause(t.Context(), time.Minute, kick) || now() != time.Minute {
			t.Errorf("a kick ended Pause after %s, want at once and true", now()-time.Minute)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if work.Pause(ctx, time.Minute, nil) || now() != time.Minute+time.Second {
			t.Errorf("the context ended Pause after %s, want 1s and false", now()-time.Minute)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		takes, want time.Duration
		broken      bool
	}{
		{"work that finishes is not broken off", 9 * time.Second, 9 * time.Second, false},
		{"work that takes too long is broken off", time.Hour, 12 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				now, broken := clock(), false
				work.Drain(10*time.Second, func() {
					if !work.Pause(ctx, tt.takes, nil) {
						time.Sleep(2 * time.Second) // Drain waits for this too
					}
				}, func() { broken = true; cancel() })
				if now() != tt.want || broken != tt.broken {
					t.Errorf("Drain returned after %s, broken off %t; want %s, %t", now(), broken, tt.want, tt.broken)
				}
			})
		})
	}
}
