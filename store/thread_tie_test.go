package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestMailComesInAnyOrder stores a conversation in every order: a reply may
// overtake its parent, and messages in the middle may be missing.
func TestMailComesInAnyOrder(t *testing.T) {
	t.Parallel()
	conversation := []threadMail{
		{from: "ann@out.example", id: "<1@x>", subject: "Trip"},
		{from: "bob@out.example", id: "<2@x>", subject: "AW: Trip", reply: "<1@x>", refs: []string{"<1@x>"}},
		{from: "ann@out.example", id: "<3@x>", subject: "Re: AW: Trip", reply: "<2@x>"},
		{from: "eve@out.example", id: "<4@x>", subject: "Trip", refs: []string{"<never@seen>", "<3@x>"}},
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		for _, order := range permutations(len(conversation)) {
			in := storetest.Inbox(t, s)
			var copies []*store.NewMessage
			for _, i := range order {
				copies = append(copies, storetest.NewReceived(in, conversation[i].edit))
			}
			for _, together := range []bool{false, true} {
				if threads := threadsOf(t, s, in, copies, together); len(threads) != 1 {
					t.Errorf("order %v, in one transaction %v: %d threads", order, together, len(threads))
				}
				in = storetest.Inbox(t, s)
				for _, m := range copies {
					m.AccountID, m.InboxSeq = in.AccountID, in.Seq
				}
			}
		}
	})
}

// threadsOf receives the messages, one after the other or together, and returns
// how many there are in each thread.
func threadsOf(t *testing.T, s *store.Store, in store.Inbox, copies []*store.NewMessage, together bool) map[string]int {
	t.Helper()
	groups := slices.Collect(slices.Chunk(copies, 1))
	if together {
		groups = [][]*store.NewMessage{copies}
	}
	for _, g := range groups {
		if _, err := s.AddReceived(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
	}
	threads := map[string]int{}
	for _, m := range every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 100) {
		threads[m.ThreadID]++
	}
	return threads
}

func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

func TestRepliesToAMissingMessageAreOneThread(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in, other := storetest.Inbox(t, s), storetest.Inbox(t, s)
		first := storetest.Received(t, s, in, threadMail{reply: "<lost@x>"}.edit)
		if second := storetest.Received(t, s, in, threadMail{reply: "<lost@x>"}.edit); second.ThreadID != first.ThreadID {
			t.Error("two threads")
		}
		if m := storetest.Received(t, s, other, threadMail{reply: "<lost@x>"}.edit); m.ThreadID == first.ThreadID {
			t.Error("a reply in another inbox joined")
		}
		if m := storetest.Received(t, s, other, threadMail{id: "<lost@x>"}.edit); m.ThreadID == first.ThreadID {
			t.Error("the message itself joined in another inbox")
		}
	})
}

// A reference to a Message-ID of another account has no effect.
func TestForgedReferencesReachNoOtherAccount(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		victim, own := storetest.Inbox(t, s), storetest.Inbox(t, s)
		secret := storetest.Received(t, s, victim, threadMail{id: "<secret@x>", from: "ann@out.example", subject: "Deal"}.edit)
		storetest.Received(t, s, victim, threadMail{reply: "<next@x>"}.edit)
		for name, m := range map[string]threadMail{
			"in reply":         {from: "ann@out.example", reply: "<secret@x>", subject: "Re: Deal"},
			"by reference":     {refs: []string{"<secret@x>"}},
			"by its own name":  {id: "<secret@x>", from: "ann@out.example", subject: "Deal"},
			"by its subject":   {from: "ann@out.example", subject: "Re: Deal"},
			"by an awaited id": {id: "<next@x>"},
			"by number":        {join: secret.ThreadSeq},
		} {
			if got := storetest.Received(t, s, own, m.edit); got.ThreadID == secret.ThreadID {
				t.Errorf("%s: joined the thread of another account", name)
			}
		}
		for _, m := range every(t, s, store.MessageFilter{InboxSeq: victim.Seq}, 100) {
			if m.InboxSeq != victim.Seq || m.ThreadSeq == 0 {
				t.Errorf("the victim's mail is now %+v", m)
			}
		}
	})
}

func TestMailWithoutMessageIDIsTiedByNoSubject(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		backup := threadMail{from: "cron@out.example", id: "none", subject: "Re: Backup done"}
		first := storetest.Received(t, s, in, backup.edit)
		if second := storetest.Received(t, s, in, backup.edit); second.ThreadID == first.ThreadID {
			t.Error("two reports of a script are one thread")
		}
	})
}

func TestLongReferencesKeepTheRootAndTheNewest(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		var refs []string
		for i := range 90 {
			refs = append(refs, fmt.Sprintf("<%d@x>", i))
		}
		root := storetest.Received(t, s, in, threadMail{id: "<0@x>", subject: "Root"}.edit)
		if m := storetest.Received(t, s, in, threadMail{subject: "Re: Root", refs: refs}.edit); m.ThreadID != root.ThreadID {
			t.Error("the root was not found")
		}
		newest := storetest.Received(t, s, in, threadMail{id: "<near@x>", subject: "Near"}.edit)
		if m := storetest.Received(t, s, in, threadMail{refs: append([]string{"<not@there>"}, append(refs[1:], "<near@x>")...)}.edit); m.ThreadID != newest.ThreadID {
			t.Error("the newest was not found")
		}
	})
}

// TestThreadsMatchTheModel runs random mail on both databases.
func TestThreadsMatchTheModel(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		db := openRaw(t, cfg)
		random := rand.New(rand.NewPCG(1, 2))
		for range 25 {
			program := make([]byte, 4*(2+random.IntN(14)))
			for i := range program {
				program[i] = byte(random.Uint32() & 0xff)
			}
			checkThreads(t, s, db, program)
		}
	})
}

// A reply joins a thread by the number that the thread had before it was merged
// into another.
func TestReplyToAMergedThread(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		first := storetest.Received(t, s, in, threadMail{id: "<1@x>", subject: "One"}.edit)
		third := storetest.Received(t, s, in, threadMail{id: "<3@x>", subject: "Three", reply: "<2@x>"}.edit)
		second := storetest.Received(t, s, in, threadMail{id: "<2@x>", subject: "Two", reply: "<1@x>"}.edit)
		reply := storetest.Sent(t, s, in, []string{"ann@out.example"}, func(m *store.NewMessage) {
			m.NewThread, m.JoinThread = false, third.ThreadSeq
			m.Refs.V.InReplyTo = []string{"<3@x>"}
		})
		if second.ThreadID != first.ThreadID || reply.ThreadID != first.ThreadID || third.ThreadID == first.ThreadID {
			t.Errorf("threads %s, %s, %s and %s", first.ThreadID, second.ThreadID, third.ThreadID, reply.ThreadID)
		}
		if m, err := s.Message(t.Context(), in.AccountID, third.ID); err != nil || m.ThreadID != first.ThreadID {
			t.Errorf("the third mail is in thread %s, %v", m.ThreadID, err)
		}
	})
}
