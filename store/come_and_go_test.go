package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// H9: a client that pages while messages are added, deleted and indexed sees none
// twice, and all that were there from the beginning to the end.
func TestPagesWhileMessagesComeAndGo(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		old := map[string]bool{}
		for i := range 30 {
			m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Subject = fmt.Sprintf("old red %d", i) })
			old[m.ID] = true
		}
		all := store.MessageFilter{AccountID: in.AccountID}
		lists := map[string]store.MessageFilter{
			"the account": all, "an inbox": {AccountID: in.AccountID, InboxSeq: in.Seq}, "some inboxes": {AccountID: in.AccountID, InboxIDs: []string{in.ID}},
			"a subject": {AccountID: in.AccountID, Subject: "old"}, "a word": {AccountID: in.AccountID, Text: words("red")},
			"a phrase": {AccountID: in.AccountID, Text: phrase("old", "red")},
		}
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for name, f := range lists {
			readers.Go(func() {
				for last := false; !last; {
					select {
					case <-stop:
						last = true // once more, when all is quiet
					default:
					}
					wantAllOnce(t, name, every(t, s, f, 4), old)
				}
			})
		}
		comeAndGo(t, s, in)
		close(stop)
		readers.Wait()
	})
}

// comeAndGo stores messages, some at a time, indexes some and deletes all.
func comeAndGo(t *testing.T, s *store.Store, in store.Inbox) {
	t.Helper()
	const together = 20
	for n := 0; n < rowsThatComeAndGo; n += together {
		var copies []*store.NewMessage
		for i := range together {
			copies = append(copies, storetest.NewReceived(in, func(m *store.NewMessage) { m.Subject = fmt.Sprintf("new red %d", n+i) }))
		}
		ms, err := s.AddReceived(t.Context(), copies, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := s.Index(t.Context(), 15, subjectText); err != nil {
			t.Error(err)
		}
		for _, m := range ms {
			if err := s.DeleteMessage(t.Context(), in.AccountID, m.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

func wantAllOnce(t *testing.T, list string, got []store.Message, want map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	missing := len(want)
	for _, m := range got {
		if seen[m.ID] {
			t.Errorf("%s: %q comes twice", list, m.Subject)
		}
		if seen[m.ID] = true; want[m.ID] {
			missing--
		}
	}
	if missing > 0 {
		t.Errorf("%s: %d of %d old messages are missing", list, missing, len(want))
	}
}
