package store_test

import (
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
