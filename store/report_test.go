package store_test

import (
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
	if _, err := s.ReleaseLeases(t.Context(), store.WorkRecipients); err != nil {
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
