package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// attempted records what came of the next attempt for the only recipient of an
// email.
func attempted(t *testing.T, s *store.Store, status store.RecipientStatus) store.Report {
	t.Helper()
	c := claim(t, s, 1, time.Minute)[0]
	if status != store.RecipientQueued {
		err := s.RecordAttempt(t.Context(), store.Attempt{
			RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: status, Response: "250 2.0.0 OK",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return store.Report{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, EmailFold: strings.ToLower(c.Email)}
}

// What a report makes of a recipient, from each state; and what it makes when it
// comes again: nothing (O6).
func TestReports(t *testing.T) {
	t.Parallel()
	const (
		queued     = store.RecipientQueued
		sent       = store.RecipientSent
		delivered  = store.RecipientDelivered
		opened     = store.RecipientOpened
		clicked    = store.RecipientClicked
		bounced    = store.RecipientBounced
		complained = store.RecipientComplained
		failed     = store.RecipientFailed
		suppressed = store.RecipientSuppressed
	)
	tests := []struct {
		before, report, after store.RecipientStatus
		wanted                string
	}{
		{queued, bounced, bounced, "bounced"},
		{sent, bounced, bounced, "bounced"},
		{delivered, bounced, bounced, "bounced"},
		{opened, bounced, bounced, "bounced"},
		{complained, bounced, complained, ""},
		{failed, bounced, failed, ""},
		{suppressed, bounced, suppressed, ""},
		{queued, delivered, queued, ""},
		{sent, delivered, delivered, "delivered"},
		{bounced, delivered, bounced, ""},
		{clicked, delivered, clicked, ""},
		{queued, complained, complained, "sent delivered complained"},
		{sent, complained, complained, "delivered complained"},
		{clicked, complained, complained, "complained"},
		{bounced, complained, complained, "complained"},
		{failed, complained, failed, ""},
		{queued, opened, queued, ""},
		{sent, opened, opened, "delivered opened"},
		{delivered, opened, opened, "opened"},
		{bounced, opened, bounced, "opened"},
		{sent, clicked, clicked, "delivered clicked"},
		{opened, clicked, clicked, "clicked"},
		{complained, opened, complained, "opened"},
		{complained, clicked, complained, "clicked"},
		{failed, opened, failed, ""},
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		account := storetest.Account(t, s).Seq
		for _, tt := range tests {
			e := storetest.Email(t, s, account, []string{"Ann@out.example"})
			r := attempted(t, s, tt.before)
			r.Status = tt.report
			earlier := len(events(t, cfg, e.Seq))
			if tt.report == opened || tt.report == clicked {
				r.Bot = true // which moves nothing
				if err := s.RecordReport(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				wantRecipient(t, s, e, tt.before)
				earlier, r.Bot = len(events(t, cfg, e.Seq)), false
			}
			for range 2 {
				if err := s.RecordReport(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				if tt.report == opened || tt.report == clicked {
					break // each one is reported
				}
			}
			var got []string
			for _, ev := range events(t, cfg, e.Seq)[earlier:] {
				got = append(got, strings.TrimPrefix(ev.Type, "email."))
			}
			if d := cmp.Diff(tt.wanted, strings.Join(got, " ")); d != "" {
				t.Errorf("%s when %s: events %s", tt.report, tt.before, d)
			}
			wantRecipient(t, s, e, tt.after)
			if tt.after == queued {
				attemptedAgain(t, s)
			}
		}
	})
}

// attemptedAgain ends what is still queued, so that it is not claimed by others.
func attemptedAgain(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := s.ReleaseLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range claim(t, s, 10, time.Minute) {
		a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientFailed, Response: "554 5.3.0 No"}
		if err := s.RecordAttempt(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

func wantRecipient(t *testing.T, s *store.Store, e store.Email, want store.RecipientStatus) {
	t.Helper()
	got, err := s.Email(t.Context(), e.AccountID, nil, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	r := got.Recipients[0]
	if r.Status != want && (want != store.RecipientQueued || r.Status != store.RecipientSending) {
		t.Errorf("the recipient is %s, want %s", r.Status, want)
	}
	if r.BouncedAt == nil && r.Status == store.RecipientBounced {
		t.Errorf("%s, and bounced at %v", r.Status, r.BouncedAt)
	}
}

// An open after a complaint does not move the status, but its time is recorded, once.
func TestOpenAfterAComplaint(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		e := storetest.Email(t, s, storetest.Account(t, s).Seq, []string{"Ann@out.example"})
		r := attempted(t, s, store.RecipientDelivered)
		for _, report := range []struct {
			status store.RecipientStatus
			bot    bool
		}{{store.RecipientComplained, false}, {store.RecipientOpened, true}, {store.RecipientOpened, false}, {store.RecipientClicked, false}} {
			clock.Add(time.Minute)
			r.Status, r.Bot = report.status, report.bot
			if err := s.RecordReport(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Email(t.Context(), e.AccountID, nil, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		want := store.NewTime(clock.Now().Add(-time.Minute))
		if got.Status != store.MessageComplained || got.OpenedAt == nil || !got.OpenedAt.Equal(want.Time) {
			t.Errorf("the email is %s, and opened at %v, want %v", got.Status, got.OpenedAt, want)
		}
	})
}

// A hard bounce and a complaint put the recipient on their account's list alone,
// with why, when and for which mail (O7); a soft bounce does not.
func TestReportsSuppress(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account, other := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		report := func(edit func(*store.Report)) store.Email {
			e := storetest.Email(t, s, account, []string{"Ann@out.example"})
			r := attempted(t, s, store.RecipientDelivered)
			edit(&r)
			if err := s.RecordReport(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			return e
		}
		onList := func() []store.Suppression {
			l, err := s.ListSuppressions(t.Context(), account, store.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return l.Rows
		}
		report(func(r *store.Report) { r.Status, r.Soft = store.RecipientBounced, true })
		if got := onList(); len(got) != 0 {
			t.Errorf("a soft bounce suppresses %v", got)
		}
		e := report(func(r *store.Report) { r.Status, r.Suppress = store.RecipientBounced, store.SuppressedHardBounce })
		if err := s.Unsubscribe(t.Context(), other, e.Seq, "bob@out.example", "bob@out.example"); err != nil {
			t.Fatal(err)
		}
		got := onList()
		if len(got) != 1 || got[0].Email != "Ann@out.example" || got[0].EmailFold != "ann@out.example" || got[0].Reason != store.SuppressedHardBounce ||
			got[0].Category != store.SuppressAll || got[0].Source == nil || *got[0].Source != e.ID || got[0].CreatedAt.IsZero() {
			t.Errorf("the list is %+v", got)
		}
		if found, err := s.Suppressed(t.Context(), other, []string{"ann@out.example"}, store.CategoryMarketing); err != nil || len(found) != 0 {
			t.Errorf("another account suppresses %v, %v", found, err)
		}
		l, err := s.ListSuppressions(t.Context(), other, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 1 || l.Rows[0].Source != nil || l.Rows[0].Category != store.SuppressMarketing {
			t.Errorf("who unsubscribed is %+v, %v; another account's mail is not its source", l.Rows, err)
		}
	})
}

// The number of reported opens of a message is limited.
func TestOpensAreBounded(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		e := storetest.Email(t, s, storetest.Account(t, s).Seq, []string{"Ann@out.example"})
		r := attempted(t, s, store.RecipientDelivered)
		r.Status = store.RecipientOpened
		for range 110 {
			if err := s.RecordReport(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for _, ev := range events(t, cfg, e.Seq) {
			if ev.Type == "email.opened" {
				n++
			}
		}
		if n != 100 {
			t.Errorf("%d events of opens, want 100", n)
		}
	})
}

// A report about a message of an inbox is of that recipient alone, and tells with
// the words of messages.
func TestReportOnOneOfSeveral(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		m := storetest.Sent(t, s, storetest.Inbox(t, s), []string{"a@out.example", "b@out.example"})
		for _, c := range claim(t, s, 2, time.Minute) {
			a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered, Response: "250 OK"}
			if err := s.RecordAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Message(t.Context(), m.AccountID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		rs := got.Recipients
		report := store.Report{RecipientSeq: rs[1].Seq, MessageSeq: m.Seq, Status: store.RecipientBounced, Response: "no such user", Code: 550}
		if err := s.RecordReport(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		report.MessageSeq++ // of another mail
		if err := s.RecordReport(t.Context(), report); err != nil {
			t.Fatal(err)
		}
		got, err = s.Message(t.Context(), m.AccountID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		state := fmt.Sprintln(got.Status, rs[0].Status, got.Recipients[1].Status, *got.Recipients[1].LastResponse)
		if state != "delivered delivered bounced no such user\n" {
			t.Errorf("after the report: %s", state)
		}
		all := events(t, cfg, m.Seq)
		if last := all[len(all)-1]; last != (event{"message.bounced", "b@out.example", "delivered"}) {
			t.Errorf("the last event is %v", last)
		}
	})
}
