package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// All mail is counted, and each row that nothing would move on is named.
func TestAccountForAll(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		db := openRaw(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Received(t, s, in)
		sent := storetest.Sent(t, s, in, []string{"a@out.example", "b@out.example"})
		later := time.Now().Add(time.Hour)
		storetest.Email(t, s, in.AccountID, []string{"c@out.example"}, func(e *store.NewEmail) { e.ScheduledAt = store.TimePtr(&later) })
		a, err := s.AccountForAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := store.Accounts{
			Messages:   map[string]int64{"in received": 1, "out queued": 1, "out scheduled": 1},
			Recipients: map[string]int64{"queued": 3},
			Queued:     map[string]int64{"a connection": 2, "the scheduled time": 1},
			Deliveries: map[string]int64{},
		}
		if d := cmp.Diff(want, a); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		of := func(email string) string { return "message " + sent.ID + " to " + email + " " }
		for _, tt := range []struct{ change, found, back string }{
			{`UPDATE recipients SET next_attempt_at = NULL WHERE email = 'a@out.example'`, of("a@out.example") + "is queued and waits for nothing", `UPDATE recipients SET next_attempt_at = created_at WHERE email = 'a@out.example'`},
			{`UPDATE recipients SET next_attempt_at = created_at - 121000000 WHERE email = 'b@out.example'`, of("b@out.example") + "has been due for more than 2 minutes", `UPDATE recipients SET next_attempt_at = created_at WHERE email = 'b@out.example'`},
			{`UPDATE recipients SET status = 'sent' WHERE email = 'b@out.example'`, of("b@out.example") + "is sent and would be sent again", `UPDATE recipients SET status = 'queued' WHERE email = 'b@out.example'`},
			{`UPDATE emails SET due_at = NULL`, "is queued and waits for nothing", `UPDATE emails SET due_at = scheduled_at`},
			{`UPDATE messages SET direction = 'out', status = 'sent' WHERE direction = 'in'`, "is sent to no recipient", `UPDATE messages SET direction = 'in', status = 'received' WHERE status = 'sent'`},
			{`UPDATE recipients SET status = 'sent', next_attempt_at = NULL WHERE domain = 'out.example'`, "message " + sent.ID + " is queued, and none of its recipients is", ""},
		} {
			db.MustExec(tt.change)
			a, err := s.AccountForAll(t.Context())
			if err != nil || !slices.ContainsFunc(a.Unaccounted, func(line string) bool { return strings.Contains(line, tt.found) }) {
				t.Errorf("%s: found %q, %v, want %q", tt.change, a.Unaccounted, err, tt.found)
			}
			if tt.back == "" {
				continue
			}
			db.MustExec(tt.back)
			if a, err := s.AccountForAll(t.Context()); err != nil || len(a.Unaccounted) > 0 {
				t.Errorf("%s: found %q, %v, want nothing", tt.back, a.Unaccounted, err)
			}
		}
	})
}

// Mail that waited for a person is not overdue when it is released, in the queue's age
// either.
func TestReleasedMailIsNotOverdue(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		db := openRaw(t, cfg)
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"a@out.example", "b@out.example"})
		for name, wait := range map[string]func() error{
			"resumed": func() error {
				stopAll(t, s, in.AccountID)
				db.MustExec(`UPDATE recipients SET stopped_due = stopped_due - 3600000000`)
				_, err := s.Resume(t.Context(), in.AccountID, store.StopAccount)
				return err
			},
			"held": func() error {
				if err := s.Hold(t.Context()); err != nil {
					return err
				}
				db.MustExec(`UPDATE recipients SET held_due = held_due - 3600000000`)
				_, err := s.ReleaseHeld(t.Context(), time.Time{})
				return err
			},
		} {
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			if a, err := s.AccountForAll(t.Context()); err != nil || len(a.Unaccounted) > 0 {
				t.Errorf("%s: %q, %v, want nothing overdue", name, a.Unaccounted, err)
			}
			if due, age, err := s.QueueLag(t.Context()); err != nil || due != 2 || age > time.Minute {
				t.Errorf("%s: %d recipients are due for %s, %v", name, due, age, err)
			}
		}
	})
}
