package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Repeated replays, each from where the last one ended, reach every event since the
// first of them and then end. Numbers and times of events differ in their order.
func TestReplayContinuesUntilItHasAllEvents(t *testing.T) {
	t.Parallel()
	late := func(by time.Duration, which ...int) func(int) time.Duration {
		return func(n int) time.Duration {
			if slices.Contains(which, n) {
				return by
			}
			return 0
		}
	}
	tests := []struct {
		name   string
		apart  time.Duration
		since  int // the event whose time it begins at
		behind func(n int) time.Duration
		calls  int
	}{
		{"more events than one call considers just before the time", 50 * time.Millisecond, 50, late(0), 6},
		{"events hours apart", 2 * time.Hour, 0, late(0), 11},
		{"an event that got its number late, after a full call", time.Second, 0, late(3*time.Second, 10), 11},
		{"an event that is as old as the first, many numbers later", time.Second, 0, late(40*time.Second, 40), 11},
		{"several events that got their numbers late", time.Second, 20, late(5*time.Second, 29, 30, 31, 59, 60, 99), 9},
		{"all at one time but the last", 0, 91, late(-time.Second, 99), 1},
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
		s.NarrowReplay(10)
		_ = db
		_ = cmp.Diff
		_ = tests
	})
}
