package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// What decides whether a due email may leave is held until the email is queued: a
// change that is under way when the email becomes due counts.
func TestChangeUnderWayWhenAnEmailIsDue(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		e := storetest.Email(t, s, in.AccountID, []string{"ann@out.example"}, at(time.Now().Add(-time.Second)), func(e *store.NewEmail) {
			e.FromInbox, e.FromEmail = &in.Seq, in.Address
		})
		done := make(chan struct{})
		_, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
			in.SendPolicy = store.PolicyReplyOnly
			go func() {
				defer close(done)
				if _, err := s.ReleaseScheduled(t.Context(), dueRules); err != nil {
					t.Error(err)
				}
			}()
			select {
			case <-done:
				t.Error("the email was queued while its inbox was being changed")
			case <-time.After(200 * time.Millisecond): // it waits
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		<-done
		if got := email(t, s, e); got.Status != store.MessageFailed || len(claim(t, s, 10, time.Minute)) != 0 {
			t.Errorf("the email is %s", got.Status)
		}
	})
}

// An email that cannot leave when it is due ends then: retention counts from the
// failure, not from when the email was accepted.
func TestEmailThatFailsWhenDueIsKeptFromThen(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		const keep = store.DefaultEmailRetention
		fails, holds := storetest.Inbox(t, s), storetest.Inbox(t, s)
		from := func(in store.Inbox) func(*store.NewEmail) {
			return func(e *store.NewEmail) { e.FromInbox, e.FromEmail = &in.Seq, in.Address }
		}
		due := at(clock.Now().Add(20 * day))
		failed := storetest.Email(t, s, fails.AccountID, []string{"ann@out.example"}, due, from(fails))
		held := storetest.Email(t, s, holds.AccountID, []string{"ann@out.example"}, due, from(holds))
		for in, policy := range map[*store.Inbox]store.SendPolicy{&fails: store.PolicyReplyOnly, &holds: store.PolicyApproval} {
			_, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
				in.SendPolicy = policy
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		rules := dueRules
		rules.Draft = func(_ context.Context, e store.Email) (store.NewDraft, error) { return storetest.NewDraft(holds), nil }
		clock.Add(20 * day)
		if _, err := s.ReleaseScheduled(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
		if a, b := email(t, s, failed), email(t, s, held); a.Status != store.MessageFailed || b.Status != store.EmailCancelled {
			t.Fatalf("the emails are %s and %s", a.Status, b.Status)
		}
		expire := func(want int) {
			t.Helper()
			if gone, err := s.ExpireEmails(t.Context(), keep, store.Time{}); err != nil || gone.Contents != want {
				t.Errorf("removed %d contents, want %d: %v", gone.Contents, want, err)
			}
		}
		clock.Add(keep - time.Second)
		expire(0)
		clock.Add(time.Second)
		expire(2)
	})
}

// A scheduled email that cannot become a draft fails if its content is lost, and else waits.
// No other email waits for it.
func TestAnEmailWithoutADraftDelaysNoOther(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in, other := storetest.Inbox(t, s), storetest.Account(t, s)
		due := at(begin.Add(time.Hour))
		fromInbox := func(e *store.NewEmail) { e.FromInbox, e.FromEmail = &in.Seq, in.Address }
		lost := storetest.Email(t, s, in.AccountID, []string{"a@out.example"}, due, fromInbox)
		unread := storetest.Email(t, s, in.AccountID, []string{"b@out.example"}, due, fromInbox)
		unread2 := storetest.Email(t, s, in.AccountID, []string{"d@out.example"}, due, fromInbox)
		storetest.Email(t, s, other.Seq, []string{"c@out.example"}, due)
		if _, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error { in.SendPolicy = store.PolicyApproval; return nil }); err != nil {
			t.Fatal(err)
		}
		rules := dueRules
		slow := 0
		rules.Draft = func(_ context.Context, e store.Email) (store.NewDraft, error) {
			if e.ID == lost.ID {
				return store.NewDraft{}, store.ErrDamaged
			}
			slow++
			return store.NewDraft{}, errors.New("the bucket does not respond")
		}
		clock.Add(2 * time.Hour)
		for round := range 3 {
			if _, err := s.ReleaseScheduled(t.Context(), rules); err != nil {
				t.Fatal(err)
			}
			if slow > round+1 {
				t.Errorf("round %d: the bucket was asked %d times", round, slow)
			}
		}
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 || cs[0].Email != "c@out.example" {
			t.Errorf("claimed %v", cs)
		}
		for id, want := range map[string]store.MessageStatus{lost.ID: store.MessageFailed, unread.ID: store.EmailScheduled, unread2.ID: store.EmailScheduled} {
			if e, err := s.Email(t.Context(), in.AccountID, nil, id); err != nil || e.Status != want {
				t.Errorf("%s is %s, %v, want %s", id, e.Status, err, want)
			}
		}
	})
}
