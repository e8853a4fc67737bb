package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

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
