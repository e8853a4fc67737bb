package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// All of one transaction have the same time: the number decides.
func TestPagesCutAmongMessagesOfOneTime(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		var copies []*store.NewMessage
		var want []string
		for i := range 9 {
			copies = append(copies, storetest.NewReceived(in, func(m *store.NewMessage) { m.Subject = fmt.Sprint(i) }))
			want = append([]string{fmt.Sprint(i)}, want...)
		}
		ms, err := s.AddReceived(t.Context(), copies, nil)
		if err != nil {
			t.Fatal(err)
		}
		for limit := 1; limit <= 10; limit++ {
			if diff := cmp.Diff(want, subjects(every(t, s, store.MessageFilter{InboxSeq: in.Seq}, limit))); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
			}
		}
		next, err := s.FirstMessage(t.Context(), store.MessageFilter{InboxSeq: in.Seq, After: ms[3].Place()})
		if err != nil || next.Subject != "4" {
			t.Errorf("after 3 comes %q, %v", next.Subject, err)
		}
	}, storetest.WithNow(clock.Now))
}

// A wait that has looked up to NewestIn finds what comes later, and only that.
func TestNewestInSeparatesOldMessagesFromNew(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		if p, err := s.NewestIn(t.Context(), in.Seq); err != nil || p.Seq != 0 {
			t.Fatalf("the newest of an empty inbox is %+v, %v", p, err)
		}
		f := store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq}
		for range 3 {
			storetest.Received(t, s, storetest.Inbox(t, s)) // of another inbox
			p, err := s.NewestIn(t.Context(), in.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if p.Seq != 0 {
				f.After = &p
			}
			if m, err := s.FirstMessage(t.Context(), f); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("found %s, %v: nothing came", m.ID, err)
			}
			want := storetest.Received(t, s, in).ID
			if m, err := s.FirstMessage(t.Context(), f); err != nil || m.ID != want {
				t.Fatalf("got %s, %v, want %s", m.ID, err, want)
			}
		}
	})
}
