package storetest_test

import (
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestRunGivesEachEngineAnEmptyStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		if _, err := s.FirstAccount(t.Context()); err == nil {
			t.Fatal("a fresh store has an account")
		}
		in := storetest.Inbox(t, s)
		got := storetest.Received(t, s, in)
		want, err := s.Message(t.Context(), in.AccountID, got.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want.Subject != got.Subject {
			t.Errorf("read subject %q, stored %q", want.Subject, got.Subject)
		}
		sent := storetest.Sent(t, s, in, []string{"bob@out.example"})
		if len(sent.Recipients) != 1 {
			t.Errorf("sent to %d recipients, want 1", len(sent.Recipients))
		}
	})
}
