package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A reference to a Message-ID of another account has no effect.
func TestForgedReferencesReachNoOtherAccount(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		victim, own := storetest.Inbox(t, s), storetest.Inbox(t, s)
		secret := storetest.Received(t, s, victim, threadMail{id: "<secret@x>", from: "ann@out.example", subject: "Deal"}.edit)
		for name, m := range map[string]threadMail{
			"in reply":        {from: "ann@out.example", reply: "<secret@x>", subject: "Re: Deal"},
			"by reference":    {refs: []string{"<secret@x>"}},
			"by its own name": {id: "<secret@x>", from: "ann@out.example", subject: "Deal"},
			"by its subject":  {from: "ann@out.example", subject: "Re: Deal"},
			"by number":       {join: secret.ThreadSeq},
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
