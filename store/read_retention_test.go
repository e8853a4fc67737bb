package store_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// The content of an email goes 30 days after the email was sent or failed, not
// after it was accepted.
func TestEmailContentIsKeptFromTheEndOfDelivery(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		account := storetest.Account(t, s)
		const keep = store.DefaultEmailRetention
		ids := map[store.RecipientStatus]string{}
		for _, status := range []store.RecipientStatus{store.RecipientDelivered, store.RecipientFailed} {
			ids[status] = storetest.Email(t, s, account.Seq, []string{"a@out.example"}).ID
		}
		clock.Add(4 * day) // of retries
		claimed, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		if err != nil || len(claimed) != 2 {
			t.Fatal(len(claimed), err)
		}
		for _, c := range claimed {
			status := store.RecipientFailed
			if e, err := s.Email(t.Context(), account.Seq, nil, ids[store.RecipientDelivered]); err != nil {
				t.Fatal(err)
			} else if e.Seq == c.MessageSeq {
				status = store.RecipientDelivered
			}
			a := store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: status, Response: "554 said"}
			if err := s.RecordAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		want := func(kept bool, removed int) {
			t.Helper()
			for status, id := range ids {
				e, err := s.Email(t.Context(), account.Seq, nil, id)
				if err != nil || (e.Content != nil) != kept || (e.ExpiredAt == nil) != kept {
					t.Errorf("%s: content %t, expired at %v, %v; want it kept: %t", status, e.Content != nil, e.ExpiredAt, err, kept)
				}
			}
			gone, err := s.ExpireEmails(t.Context(), keep, store.Time{})
			if err != nil || gone.Contents != removed {
				t.Errorf("removed %d contents, %v, want %d", gone.Contents, err, removed)
			}
		}
		clock.Add(keep - time.Second)
		want(true, 0)
		clock.Add(time.Second)
		want(false, 2)
		want(false, 0)
	})
}
