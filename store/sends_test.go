package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// atMost are limits with these values by name.
func atMost(limits map[string]int64) *store.Limits {
	l := &store.Limits{OnLimit: store.LimitRefuses}
	for _, f := range store.LimitFields() {
		if n, ok := limits[f.Name]; ok {
			*f.Of(l) = &n
		}
	}
	return l
}

// limited gives an inbox limits.
func limited(l *store.Limits) func(*store.Inbox) {
	return func(in *store.Inbox) { in.Limits = &store.JSON[store.Limits]{V: *l} }
}

// A step of a budget's story: after a pause, a message to some recipients is
// accepted, or refused until it fits.
type budgetStep struct {
	after time.Duration
	to    string // separated by spaces
	text  string
	over  string        // the limit that refuses it
	fits  time.Duration // from now
}

func TestBudgetWindows(t *testing.T) {
	t.Parallel()
	const minute, hour, day = time.Minute, time.Hour, 24 * time.Hour
	tests := []struct {
		name   string
		limits map[string]int64
		steps  []budgetStep
	}{
		{"recipients of a minute", map[string]int64{"sends_per_minute": 3}, []budgetStep{
			{to: "a@x.example b@x.example"},
			{after: 20 * time.Second, to: "c@x.example"},
			{after: 10 * time.Second, to: "d@x.example", over: "sends_per_minute", fits: 30 * time.Second},
			{to: "d@x.example e@x.example f@x.example", over: "sends_per_minute", fits: 50 * time.Second},
			{after: 30 * time.Second, to: "d@x.example e@x.example"},
			{to: "f@x.example", over: "sends_per_minute", fits: 20 * time.Second},
			{to: "1@x.example 2@x.example 3@x.example 4@x.example", over: "sends_per_minute", fits: minute},
		}},
		{"an hour within a day", map[string]int64{"sends_per_hour": 1, "sends_per_day": 2}, []budgetStep{
			{to: "a@x.example"},
			{to: "a@x.example", over: "sends_per_hour", fits: hour},
			{after: hour, to: "a@x.example"},
			{after: hour, to: "a@x.example", over: "sends_per_day", fits: 22 * hour},
			{after: 22 * hour, to: "a@x.example"},
		}},
		{"different recipients", map[string]int64{"recipients_per_day": 2}, []budgetStep{
			{to: "a@x.example A+tag@X.example"},
			{to: "b@x.example"},
			{after: hour, to: "a@x.example"},
			{to: "c@x.example", over: "recipients_per_day", fits: 23 * hour},
			{after: 23 * hour, to: "c@x.example"},
			{to: "a@x.example"},
		}},
		{"new recipients", map[string]int64{"new_recipients_per_day": 1}, []budgetStep{
			{to: "a@x.example"},
			{to: "b@x.example", over: "new_recipients_per_day", fits: day},
			{to: "a@x.example"},
			{after: day, to: "b@x.example"},
			{after: hour, to: "a@x.example b@x.example"},
		}},
		{"no new recipients", map[string]int64{"new_recipients_per_day": 0}, []budgetStep{
			{to: "a@x.example", over: "new_recipients_per_day", fits: day},
		}},
		{"one recipient", map[string]int64{"per_recipient_per_day": 2}, []budgetStep{
			{to: "a@x.example b@x.example"},
			{after: hour, to: "a@x.example"},
			{to: "b@x.example a+1@x.example", over: "per_recipient_per_day", fits: 23 * hour},
			{to: "b@x.example"},
			{after: 23 * hour, to: "a@x.example"},
		}},
		{"the same text", map[string]int64{"similar_per_hour": 2}, []budgetStep{
			{to: "ann@x.example", text: "Hi Ann, invoice 1 is due."},
			{to: "ben@x.example", text: "hi BEN, invoice 22 is due: https://x.example/22"},
			{to: "ann@x.example", text: "Hi Ann, invoice 3 is due."},
			{to: "carl@x.example", text: "Hi Carl, invoice 4 is due!", over: "similar_per_hour", fits: hour},
			{to: "carl@x.example", text: "Dinner tonight?"},
			{after: hour, to: "carl@x.example", text: "Hi Carl, invoice 4 is due!"},
		}},
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin.Truncate(time.Second))
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) { //nolint:paralleltest // they share the clock
				in := storetest.Inbox(t, s, limited(atMost(tt.limits)))
				for i, step := range tt.steps {
					clock.Add(step.after)
					_, err := s.Enqueue(t.Context(), storetest.NewSent(in, strings.Fields(step.to), func(m *store.NewMessage) {
						m.Subject, m.Text = "s", step.text
					}), nil)
					over, refused := errors.AsType[*store.Refused](err)
					switch {
					case step.over == "" && err != nil:
						t.Fatalf("step %d: %v", i, err)
					case step.over == "":
					case !refused || over.Param != "limits."+step.over:
						t.Fatalf("step %d: got %v, want %s", i, err, step.over)
					case !over.Retry.Equal(clock.Now().Add(step.fits)):
						t.Errorf("step %d: fits in %v, want %v", i, over.Retry.Sub(clock.Now()), step.fits)
					}
				}
			})
		}
	})
}

// The limits of a key, an inbox and the account all count, whatever of the three a
// send is over.
func TestBudgetsOfKeyInboxAndAccount(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		cfg.AgentLimits = atMost(map[string]int64{"sends_per_day": 6})
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s, limited(atMost(map[string]int64{"sends_per_day": 4})))
		other := storetest.Inbox(t, s, func(other *store.Inbox) { other.AccountID = in.AccountID })
		key := store.Sender{ID: "key_a", Limits: atMost(map[string]int64{"sends_per_day": 3})}
		send := func(from store.Inbox, by store.Sender) string {
			_, err := s.Enqueue(t.Context(), storetest.NewSent(from, []string{"a@x.example"}, func(m *store.NewMessage) { m.Senders = []store.Sender{by} }), nil)
			if over, ok := errors.AsType[*store.Refused](err); ok {
				return strings.TrimPrefix(over.Of, in.ID[:4])[:3]
			}
			if err != nil {
				t.Fatal(err)
			}
			return ""
		}
		var got []string
		for _, from := range []store.Inbox{in, in, other, other} { // 3 by the key
			got = append(got, send(from, key))
		}
		for range 3 { // 2 more from the inbox
			got = append(got, send(in, store.Sender{ID: "usr_b"}))
		}
		got = append(got, send(other, store.Sender{}), send(other, store.Sender{})) // 1 more of the account
		if got, want := fmt.Sprintf("%q", got), fmt.Sprintf("%q", []string{"", "", "", "key", "", "", in.ID[4:7], "", "acc"}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// When an inbox starts to limit new recipients, earlier recipients are known.
func TestInboxKnowsItsRecipients(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"Old@x.example"})
		in, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
			limited(atMost(map[string]int64{"new_recipients_per_day": 0}))(in)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Sent(t, s, in, []string{"old@x.example"})
		_, err = s.Enqueue(t.Context(), storetest.NewSent(in, []string{"old@x.example", "new@x.example"}), nil)
		if _, over := errors.AsType[*store.Refused](err); !over {
			t.Errorf("to a new recipient: %v", err)
		}
	})
}

func TestSweepSends(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin.Truncate(time.Second))
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s, limited(atMost(map[string]int64{"sends_per_day": 2, "per_recipient_per_day": 2})))
		storetest.Sent(t, s, in, []string{"a@x.example"})
		clock.Add(47 * time.Hour)
		storetest.Sent(t, s, in, []string{"a@x.example"})
		if n, err := s.Sweep(t.Context(), "sends"); n != 0 || err != nil {
			t.Errorf("swept %d early, %v", n, err)
		}
		clock.Add(time.Hour)
		if n, err := s.Sweep(t.Context(), "sends"); n != 1 || err != nil {
			t.Errorf("swept %d, want 1, %v", n, err)
		}
		storetest.Sent(t, s, in, []string{"a@x.example"})
		if _, err := s.Enqueue(t.Context(), storetest.NewSent(in, []string{"b@x.example"}), nil); err == nil {
			t.Error("a third send of the day was accepted after the sweep")
		}
	})
}
