package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestMessageFilters(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			testMessageFilters(t, e)
		})
	}
}

func testMessageFilters(t *testing.T, e storetest.Engine) {
	clock := storetest.NewClock(begin)
	s := storetest.Open(t, e, storetest.WithNow(clock.Now))
	a := storetest.Inbox(t, s)
	b := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = a.AccountID })
	storetest.Received(t, s, storetest.Inbox(t, s)) // of another account

	received := func(in store.Inbox, subject, from string, edits ...func(*store.NewMessage)) store.Message {
		clock.Add(time.Second)
		return storetest.Received(t, s, in, append(edits, func(m *store.NewMessage) {
			m.Subject, m.Addresses.V.From = subject, &mail.Address{Email: from}
		})...)
	}
	one := received(a, "Your code", "noreply@github.com", func(m *store.NewMessage) { m.HasCode = true })
	received(a, "100% off_now", "a_b@shop.example", func(m *store.NewMessage) { m.HasLink = true })
	third := received(a, `Back\slash`, "axb@shop.example")
	received(b, "ÄRGER im Büro", "x@sub.github.com")
	clock.Add(time.Second)
	storetest.Sent(t, s, a, []string{"bob@out.example"}, func(m *store.NewMessage) { m.Subject = "Sent" })
	at := third.CreatedAt

	const (
		code, off, slash, anger, sent = "Your code", "100% off_now", `Back\slash`, "ÄRGER im Büro", "Sent"
	)
	tests := []struct {
		name string
		f    store.MessageFilter
		want []string // newest first
	}{
		{"all of the account", store.MessageFilter{}, []string{sent, anger, slash, off, code}},
		{"one inbox", store.MessageFilter{InboxSeq: a.Seq}, []string{sent, slash, off, code}},
		{"the visible inboxes", store.MessageFilter{InboxIDs: []string{b.ID, "ibx_none"}}, []string{anger}},
		{"no visible inbox", store.MessageFilter{InboxIDs: []string{}}, nil},
		{"an inbox that is not visible", store.MessageFilter{InboxSeq: a.Seq, InboxIDs: []string{b.ID}}, nil},
		{"received", store.MessageFilter{InboxSeq: a.Seq, Direction: store.DirectionIn}, []string{slash, off, code}},
		{"sent", store.MessageFilter{InboxSeq: a.Seq, Direction: store.DirectionOut}, []string{sent}},
		{"by status", store.MessageFilter{InboxSeq: a.Seq, Status: store.MessageQueued}, []string{sent}},
		{"by another status", store.MessageFilter{InboxSeq: a.Seq, Status: store.MessageBounced}, nil},
		{"by sender", store.MessageFilter{InboxSeq: a.Seq, FromLike: "noreply@github.com"}, []string{code}},
		{"by sender's domain", store.MessageFilter{FromLike: "%@github.com"}, []string{code}},
		{"by sender's subdomain", store.MessageFilter{FromLike: "%@%.github.com"}, []string{anger}},
		{"an escaped wildcard is itself", store.MessageFilter{FromLike: `a\_b@shop.example`}, []string{off}},
		{"subject in part", store.MessageFilter{InboxSeq: a.Seq, Subject: "code"}, []string{code}},
		{"subject beyond ASCII", store.MessageFilter{Subject: "ärger"}, []string{anger}},
		{"% is not a wildcard", store.MessageFilter{InboxSeq: a.Seq, Subject: "0%"}, []string{off}},
		{"% alone is itself", store.MessageFilter{Subject: "%"}, []string{off}},
		{"_ is not a wildcard", store.MessageFilter{Subject: "f_n"}, []string{off}},
		{"_ is not a space", store.MessageFilter{Subject: "your_code"}, nil},
		{`\ is itself`, store.MessageFilter{Subject: `k\s`}, []string{slash}},
		{`a lone \ is itself`, store.MessageFilter{InboxSeq: a.Seq, Subject: `\`}, []string{slash}},
		{"a quote is itself", store.MessageFilter{Subject: `' OR 1=1 --`}, nil},
		{"a thread", store.MessageFilter{InboxSeq: a.Seq, ThreadID: one.ThreadID}, []string{code}},
		{"no such thread", store.MessageFilter{InboxSeq: a.Seq, ThreadID: "thr_'; DROP TABLE messages"}, nil},
		{"since a moment, and at it", store.MessageFilter{Since: &at}, []string{sent, anger, slash}},
		{"with a code", store.MessageFilter{InboxSeq: a.Seq, HasCode: true}, []string{code}},
		{"with a link", store.MessageFilter{InboxSeq: a.Seq, HasLink: true}, []string{off}},
		{"with both", store.MessageFilter{InboxSeq: a.Seq, HasCode: true, HasLink: true}, nil},
		{"after a message", store.MessageFilter{InboxSeq: a.Seq, After: third.Place()}, []string{sent}},
		{"all at once", store.MessageFilter{
			InboxSeq: a.Seq, InboxIDs: []string{a.ID}, Direction: store.DirectionIn, Status: store.MessageReceived, FromLike: "%@github.com",
			Subject: "code", ThreadID: one.ThreadID, Since: &one.CreatedAt, HasCode: true,
		}, []string{code}},
		{"text that cannot be stored", store.MessageFilter{InboxSeq: a.Seq, Subject: "\x00", ThreadID: "\xff"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.f.AccountID = a.AccountID
			l, err := s.ListMessages(t.Context(), tt.f, store.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, subjects(l.Rows)); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			if tt.f.InboxSeq == 0 || tt.f.InboxIDs != nil || tt.f.ThreadID != "" {
				return // a wait is about one inbox
			}
			first, err := s.FirstMessage(t.Context(), tt.f)
			switch {
			case len(tt.want) == 0:
				if !errors.Is(err, store.ErrNotFound) {
					t.Errorf("first: got %q, %v, want ErrNotFound", first.Subject, err)
				}
			case err != nil:
				t.Errorf("first: %v", err)
			case first.Subject != tt.want[len(tt.want)-1]:
				t.Errorf("first is %q, want the oldest", first.Subject)
			case first.Content == nil:
				t.Error("first has no content")
			}
		})
	}
}

func TestMessageOfAnotherAccountIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		m := storetest.Received(t, s, storetest.Inbox(t, s))
		other := storetest.Inbox(t, s)
		for _, id := range []string{m.ID, "msg_none", "msg_\x00", ""} {
			if _, err := s.Message(t.Context(), other.AccountID, id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%q: got %v, want ErrNotFound", id, err)
			}
		}
	})
}

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
