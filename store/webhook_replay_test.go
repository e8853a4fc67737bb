package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// insertEventsAt writes events of these times, with numbers in this order.
func insertEventsAt(t *testing.T, db *sqlx.DB, account int64, times []time.Time) (ids []string) {
	t.Helper()
	tx := db.MustBegin()
	for _, at := range times {
		id := store.NewLongID("evt_", at)
		tx.MustExec(`INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, $2, 'draft.created', false, '{}', $3)`,
			account, id, store.NewTime(at))
		ids = append(ids, id)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// replayedTo are the ids of the events of the endpoint's deliveries, oldest delivery first.
func replayedTo(t *testing.T, s *store.Store, w store.Webhook) (ids []string) {
	t.Helper()
	for _, d := range hookDeliveries(t, s, w, store.DeliveryFilter{}) {
		ids = append(ids, d.EventID)
	}
	slices.Reverse(ids)
	return ids
}

// Repeated replays, each from where the last one ended, reach every event since the
// first of those times, and end.
func TestReplaysReachEveryEvent(t *testing.T) {
	t.Parallel()
	const events, perCall = 100, 10
	tests := []struct {
		name  string
		apart time.Duration
		since int           // the event whose time the first replay begins at
		late  []int         // events that got their numbers late
		by    time.Duration // their times are earlier by this
	}{
		{"more events than one call considers before the time", 50 * time.Millisecond, 50, nil, 0},
		{"events hours apart", 2 * time.Hour, 0, nil, 0},
		{"the first event after a full call is older than the last one in it", time.Second, 0, []int{10}, 2500 * time.Millisecond},
		{"an event many numbers later is as old as the first", time.Second, 0, []int{60}, time.Minute},
		{"events of another call are older than the last one", time.Second, 20, []int{30, 31, 32, 59, 60, 99}, 5 * time.Second},
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
		s.NarrowReplay(perCall)
		begin := begin
		for _, tt := range tests {
			begin = begin.Add(events * 3 * time.Hour)
			account := storetest.Account(t, s).Seq
			w, _ := newHook(t, s, account)
			times := make([]time.Time, events)
			for n := range times {
				times[n] = begin.Add(time.Duration(n) * tt.apart)
				if slices.Contains(tt.late, n) {
					times[n] = times[n].Add(-tt.by)
				}
			}
			since := times[tt.since]
			var want []string
			for n, id := range insertEventsAt(t, db, account, times) {
				if !times[n].Before(since) {
					want = append(want, id)
				}
			}
			for calls, more := 0, true; more; calls++ {
				r, err := s.ReplayDeliveries(t.Context(), w, since, nil)
				if err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				if r.Queued > perCall || calls == events/perCall+1 {
					t.Fatalf("%s: call %d queued %d, more %t, until %v", tt.name, calls, r.Queued, r.More, r.Until)
				}
				since, more = r.Until.Time, r.More
			}
			got := replayedTo(t, s, w)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
				t.Errorf("%s: replayed events (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}
