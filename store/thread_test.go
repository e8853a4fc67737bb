package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// threadMail is what decides about a thread.
type threadMail struct {
	from, subject, id, reply string
	refs                     []string
	automated, alone         bool
	join                     int64
}

func (m threadMail) edit(n *store.NewMessage) {
	if m.from != "" {
		n.Addresses.V.From = &mail.Address{Email: m.from}
	}
	if m.subject != "" {
		n.Subject = m.subject
	}
	switch m.id {
	case "":
	case "none":
		n.HeaderID = ""
	default:
		n.HeaderID = m.id
	}
	if m.reply != "" {
		n.Refs.V.InReplyTo = []string{m.reply}
	}
	n.Refs.V.References = m.refs
	n.Automated, n.NewThread, n.JoinThread = m.automated, m.alone, m.join
}

func TestThreadOfAMail(t *testing.T) {
	t.Parallel()
	const ann, bob = "ann@out.example", "bob@out.example"
	tests := []struct {
		name          string
		first, second threadMail
		same          bool
	}{
		{"a reply joins", threadMail{id: "<a@x>"}, threadMail{reply: "<a@x>"}, true},
		{"a reply by another person joins", threadMail{from: ann, id: "<a@x>"}, threadMail{from: bob, reply: "<a@x>"}, true},
		{"a reply by a robot joins", threadMail{id: "<a@x>"}, threadMail{reply: "<a@x>", automated: true}, true},
		{"a reference joins", threadMail{id: "<a@x>"}, threadMail{refs: []string{"<never@seen>", "<a@x>"}}, true},
		{"an unknown reply opens a thread", threadMail{id: "<a@x>"}, threadMail{reply: "<b@x>"}, false},
		{"an empty Message-ID ties nothing", threadMail{id: "none", subject: "One"}, threadMail{refs: []string{""}, subject: "Two"}, false},
		{"a reply mark, the same subject and sender join", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Re: Trip"}, true},
		{"two reply marks join", threadMail{from: ann, subject: "Re: Trip"}, threadMail{from: ann, subject: "Re: Trip"}, true},
		{"the same subject without a reply mark does not", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Trip"}, false},
		{"a reply mark on the first only does not", threadMail{from: ann, subject: "Re: Trip"}, threadMail{from: ann, subject: "Trip"}, false},
		{"same sender in capitals joins", threadMail{from: ann, subject: "Trip"}, threadMail{from: "ANN@Out.example", subject: "Re: Trip"}, true},
		{"same subject of a stranger does not", threadMail{from: ann, subject: "Trip"}, threadMail{from: bob, subject: "Re: Trip"}, false},
		{"same sender, other subject does not", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Trips"}, false},
		{"subject does not count beside a reply", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Re: Trip", reply: "<x@y>"}, false},
		{"subject does not count beside references", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Re: Trip", refs: []string{"<x@y>"}}, false},
		{"subject does not count for a robot", threadMail{from: ann, subject: "Trip"}, threadMail{from: ann, subject: "Re: Trip", automated: true}, false},
		{"a new thread is new", threadMail{from: ann, subject: "Trip", id: "<a@x>"}, threadMail{from: ann, subject: "Re: Trip", alone: true}, false},
		{"a new thread is new even for a reply", threadMail{id: "<a@x>"}, threadMail{reply: "<a@x>", alone: true}, false},
	}
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e)
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					in := storetest.Inbox(t, s)
					first := storetest.Received(t, s, in, tt.first.edit)
					second := storetest.Received(t, s, in, tt.second.edit)
					if same := first.ThreadID == second.ThreadID; same != tt.same {
						t.Errorf("in one thread: %v, want %v", same, tt.same)
					}
				})
				t.Run(tt.name+", in one transaction", func(t *testing.T) {
					t.Parallel()
					in := storetest.Inbox(t, s)
					ms, err := s.AddReceived(t.Context(), []*store.NewMessage{
						storetest.NewReceived(in, tt.first.edit), storetest.NewReceived(in, tt.second.edit),
					}, nil)
					if err != nil {
						t.Fatal(err)
					}
					if same := ms[0].ThreadID == ms[1].ThreadID; same != tt.same {
						t.Errorf("in one thread: %v, want %v", same, tt.same)
					}
				})
			}
		})
	}
}

func TestSubjectTiesForFourteenDaysAfterTheLastMail(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(begin)
			s := storetest.Open(t, e, storetest.WithNow(clock.Now))
			in := storetest.Inbox(t, s)
			trip := threadMail{from: "ann@out.example", subject: "Re: Trip"}
			first := storetest.Received(t, s, in, trip.edit)
			const window = 14 * 24 * time.Hour
			clock.Add(window)
			if m := storetest.Received(t, s, in, trip.edit); m.ThreadID != first.ThreadID {
				t.Error("after 14 days: another thread")
			}
			clock.Add(window)
			if m := storetest.Received(t, s, in, trip.edit); m.ThreadID != first.ThreadID {
				t.Error("14 days after the second: another thread")
			}
			clock.Add(window + time.Second)
			if m := storetest.Received(t, s, in, trip.edit); m.ThreadID == first.ThreadID {
				t.Error("after more than 14 days: the same thread")
			}
		})
	}
}

func TestSameSubjectIsFoundBesideManyThreadsOfStrangers(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		form := func(i int) threadMail {
			return threadMail{from: fmt.Sprintf("visitor%d@out.example", i), subject: "Re: Contact form"}
		}
		var copies []*store.NewMessage
		for i := range 60 {
			copies = append(copies, storetest.NewReceived(in, form(i).edit))
		}
		ms, err := s.AddReceived(t.Context(), copies, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := storetest.Received(t, s, in, form(20).edit); got.ThreadID != ms[20].ThreadID {
			t.Error("the same visitor opened another thread")
		}
	})
}

// What the thread itself keeps must be that of its messages, however they were
// grouped into transactions.
func TestThreadCountsItsMessages(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		first := storetest.Received(t, s, in, threadMail{id: "<0@x>", from: "p0@out.example"}.edit)
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() {
				storetest.Received(t, s, in, threadMail{id: fmt.Sprintf("<%d@x>", i+1), from: fmt.Sprintf("p%d@out.example", i+1), reply: "<0@x>"}.edit)
			})
		}
		callers.Wait()
		var thread struct {
			Count  int64  `db:"message_count"`
			People string `db:"participants"`
			Last   int64  `db:"last_message_at"`
		}
		db := openRaw(t, cfg)
		if err := db.Get(&thread, `SELECT message_count, participants, last_message_at FROM threads WHERE id = $1`, first.ThreadID); err != nil {
			t.Fatal(err)
		}
		newest := every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 100)[0]
		if thread.Count != 31 || thread.Last != newest.CreatedAt.UnixMicro() {
			t.Errorf("the thread keeps %d messages until %d, want 31 until %d", thread.Count, thread.Last, newest.CreatedAt.UnixMicro())
		}
		if n := strings.Count(thread.People, "@out.example"); n != 31 {
			t.Errorf("the thread keeps %d senders, want 31", n)
		}
	})
}
