package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestSuppressionIsWidenedAndNeverNarrowed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		mine := storetest.Account(t, s).Seq
		suppress := func(reason store.SuppressionReason, category store.SuppressionCategory) store.Suppression {
			t.Helper()
			sup, err := s.Suppress(t.Context(), store.Suppression{
				AccountID: mine, Email: "Gone@example.org", EmailFold: "gone@example.org", Reason: reason, Category: category,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return sup
		}
		wantSuppressed := func(mail store.Category, want ...string) {
			t.Helper()
			got, err := s.Suppressed(t.Context(), mine, []string{"gone@example.org", "here@example.org"}, mail)
			if err != nil || cmp.Diff(want, got) != "" {
				t.Errorf("%q: %v, %v", mail, got, err)
			}
		}
		first := suppress(store.SuppressedUnsubscribe, store.SuppressMarketing)
		wantSuppressed("")
		wantSuppressed(store.CategoryTransactional)
		wantSuppressed(store.CategoryMarketing, "gone@example.org")
		if sup := suppress(store.SuppressedHardBounce, store.SuppressEmails); sup.Category != store.SuppressEmails || sup.Reason != store.SuppressedHardBounce {
			t.Errorf("widened to emails: %+v", sup)
		}
		wantSuppressed("")
		wantSuppressed(store.CategoryTransactional, "gone@example.org")
		wantSuppressed(store.CategoryMarketing, "gone@example.org")
		wide := suppress(store.SuppressedComplaint, store.SuppressAll)
		wantSuppressed("", "gone@example.org")
		suppress(store.SuppressedHardBounce, store.SuppressEmails)
		again := suppress(store.SuppressedManual, store.SuppressMarketing)
		want := first
		want.CreatedAt = wide.CreatedAt // since when it is about all mail
		want.Reason, want.Category = store.SuppressedComplaint, store.SuppressAll
		if d := cmp.Diff([]store.Suppression{want, want}, []store.Suppression{wide, again}); d != "" {
			t.Error(d)
		}

		other := storetest.Account(t, s).Seq
		if found, err := s.Suppressed(t.Context(), other, []string{"gone@example.org"}, store.CategoryMarketing); err != nil || len(found) > 0 {
			t.Errorf("in another account: %v, %v", found, err)
		}
		if _, err := s.DeleteSuppression(t.Context(), other, "gone@example.org"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("deleted by another: %v", err)
		}
		if gone, err := s.DeleteSuppression(t.Context(), mine, "gone@example.org"); err != nil || gone != want {
			t.Errorf("deleted %+v, %v", gone, err)
		}
		wantSuppressed(store.CategoryMarketing)
	})
}

// TestSuppressedRecipientIsNotTried sends a message to two recipients, one of
// them suppressed: only the other is due and counts for the plan.
func TestSuppressedRecipientIsNotTried(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"here@out.example", "gone@out.example"}, func(m *store.NewMessage) {
			m.Recipients[1].Status = store.RecipientSuppressed
		})
		due, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		if err != nil || len(due) != 1 || due[0].Email != "here@out.example" {
			t.Fatalf("due: %+v, %v", due, err)
		}
		err = s.RecordAttempt(t.Context(), store.Attempt{
			RecipientSeq: due[0].Seq, MessageSeq: due[0].MessageSeq, Fence: due[0].Fence, Status: store.RecipientDelivered, Response: "250",
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Message(t.Context(), in.AccountID, m.ID)
		if err != nil || got.Status != store.MessageDelivered || len(got.Recipients) != 2 || got.Recipients[1].Status != store.RecipientSuppressed {
			t.Errorf("%v: %+v", err, got)
		}
		u, err := s.Usage(t.Context(), in.AccountID)
		if err != nil || u.Today != 1 {
			t.Errorf("%v: %+v", err, u)
		}
	})
}

// Every recipient of an email gets a final event, also one that is suppressed
// from the start. An email without remaining recipients has failed.
func TestSuppressedRecipientsOfAnEmailAreReported(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		account := storetest.Account(t, s).Seq
		suppress := func(e *store.NewEmail) { e.Recipients[0].Status = store.RecipientSuppressed }
		some := storetest.Email(t, s, account, []string{"gone@out.example", "here@out.example"}, suppress)
		none := storetest.Email(t, s, account, []string{"gone@out.example"}, suppress)
		for _, tt := range []struct {
			of     store.Email
			status store.MessageStatus
			want   []event
		}{
			{some, store.MessageQueued, []event{{"email.queued", "", "queued"}, {"email.failed", "gone@out.example", "queued"}}},
			{none, store.MessageFailed, []event{{"email.failed", "gone@out.example", "failed"}}},
		} {
			if d := cmp.Diff(tt.want, events(t, cfg, tt.of.Seq)); d != "" || tt.of.Status != tt.status {
				t.Errorf("an email that is %s: %s", tt.of.Status, d)
			}
		}
		if due, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil); err != nil || len(due) != 1 || due[0].Email != "here@out.example" {
			t.Errorf("due: %+v, %v", due, err)
		}
	})
}

// Of those whose attempts end permanently, each is put on the list of the sending
// account once, in the transaction that ends them.
func TestAttemptsSuppress(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account, other := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		for range 3 {
			storetest.Email(t, s, account, []string{"Gone@out.example", "angry@out.example"})
		}
		due, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		if err != nil || len(due) != 6 {
			t.Fatal(len(due), err)
		}
		for _, c := range due {
			status, reason, fold := store.RecipientBounced, store.SuppressedHardBounce, "gone@out.example"
			if c.Email == "angry@out.example" {
				status, reason, fold = store.RecipientComplained, store.SuppressedComplaint, c.Email
			}
			record(t, s, c, status, func(a *store.Attempt) { a.Suppress, a.EmailFold = reason, fold })
		}
		l, err := s.ListSuppressions(t.Context(), account, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 2 {
			t.Fatalf("%+v, %v", l.Rows, err)
		}
		among, err := s.SuppressedAmong(t.Context(), []store.Addressee{
			{AccountID: account, EmailFold: "gone@out.example"},
			{AccountID: other, EmailFold: "gone@out.example"},
			{AccountID: account, EmailFold: "here@out.example"},
			{AccountID: account, EmailFold: "angry@out.example", Category: store.CategoryMarketing},
		})
		if d := cmp.Diff([]bool{true, false, false, true}, among); d != "" || err != nil {
			t.Error(d, err)
		}
	})
}
