package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// FuzzThread gives mail that refers to mail, in any order and grouped in any
// way, to two inboxes, and compares the threads with those of a model (M13).
func FuzzThread(f *testing.F) {
	cfg := storetest.Config(f, storetest.SQLite)
	s := storetest.OpenConfig(f, cfg)
	db := openRaw(f, cfg)
	f.Add([]byte{0x01, 0x00, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00})                                                 // a message and its reply
	f.Add([]byte{0x03, 0x02, 0x01, 0x00, 0x02, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00})                         // the other way round
	f.Add([]byte{0x01, 0x00, 0x00, 0x00, 0x03, 0x02, 0x00, 0x00, 0x02, 0x01, 0x00, 0x00})                         // one that ties two
	f.Add([]byte{0x81, 0x00, 0x00, 0x00, 0x83, 0x02, 0x00, 0x00, 0x82, 0x01, 0x00, 0x00})                         // in one transaction
	f.Add([]byte{0x41, 0x05, 0x00, 0x00, 0x02, 0x05, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x45, 0x02, 0x01, 0x00}) // in two inboxes
	f.Fuzz(func(t *testing.T, program []byte) {
		checkThreads(t, s, db, program[:min(len(program), 4*24)])
	})
}

// modelThread is a thread of the model: itself, or the one that it is part of.
type modelThread struct{ into *modelThread }

func (t *modelThread) whole() *modelThread {
	for t.into != nil {
		t = t.into
	}
	return t
}

// checkThreads makes a message of every four bytes: its Message-ID, In-Reply-To
// and two references, each of 16 or none; the high bits of the first choose the
// inbox, and whether it is stored together with the next. The threads must be
// those of the model, and count what is in them.
func checkThreads(t *testing.T, s *store.Store, db *sqlx.DB, program []byte) {
	t.Helper()
	inboxes := [2]store.Inbox{storetest.Inbox(t, s), storetest.Inbox(t, s)}
	there, expected := map[string]*modelThread{}, map[string]*modelThread{} // by Message-ID, which names the inbox
	taken := map[string]bool{}
	var want []*modelThread
	var group []*store.NewMessage
	var stored []store.Message
	for len(program) >= 4 {
		b := program[:4]
		program = program[4:]
		where := int(b[0]>>6) & 1
		name := func(n byte) string {
			if n&15 == 0 {
				return ""
			}
			return fmt.Sprintf("<%d@%d>", n&15, inboxes[where].Seq)
		}
		id, refs := name(b[0]), []string{name(b[1]), name(b[2]), name(b[3])}
		if taken[id] {
			id = "" // the second mail with that name
		}
		taken[id] = true
		refs = slices.DeleteFunc(refs, func(r string) bool { return r == "" })
		want = append(want, modelJoin(there, expected, id, refs))
		group = append(group, storetest.NewReceived(inboxes[where], modelMail(id, refs)))
		if b[0]>>7 == 1 && len(program) >= 4 {
			continue
		}
		ms, err := s.AddReceived(t.Context(), group, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored, group = append(stored, ms...), nil
	}
	comparePartition(t, s, stored, want)
	const wrong = `SELECT id FROM threads t WHERE inbox_seq IN ($1, $2)
		AND message_count <> (SELECT count(*) FROM messages m WHERE m.thread_seq = t.seq)`
	var ids []string
	if err := db.Select(&ids, wrong, inboxes[0].Seq, inboxes[1].Seq); err != nil {
		t.Fatal(err)
	}
	if len(ids) > 0 {
		t.Errorf("threads that count wrongly: %s", strings.Join(ids, " "))
	}
}

// modelMail writes the references of a message: the likeliest is In-Reply-To, the
// others are in References, the newest last.
func modelMail(id string, refs []string) func(*store.NewMessage) {
	m := threadMail{id: id}
	if id == "" {
		m.id = "none"
	}
	if len(refs) > 0 {
		m.reply = refs[0]
		m.refs = slices.Clone(refs[1:])
		slices.Reverse(m.refs)
	}
	return m.edit
}

// modelJoin is the rule in short: the thread of what is referred to, the
// likeliest first and before it mail that is there; else that which waits for
// this mail. What waits for it is one with it.
func modelJoin(there, expected map[string]*modelThread, id string, refs []string) *modelThread {
	var t *modelThread
	for _, known := range []map[string]*modelThread{there, expected} {
		for _, r := range refs {
			if t == nil && known[r] != nil {
				t = known[r].whole()
			}
		}
	}
	waiting := expected[id]
	switch {
	case t == nil && waiting != nil:
		t = waiting.whole()
	case t == nil:
		t = &modelThread{}
	case waiting != nil && waiting.whole() != t:
		waiting.whole().into = t
	}
	if id != "" {
		there[id] = t
	}
	for _, r := range refs {
		if there[r] == nil && expected[r] == nil {
			expected[r] = t
		}
	}
	return t
}

// comparePartition checks that mail is in one thread when it is in the model's.
func comparePartition(t *testing.T, s *store.Store, stored []store.Message, want []*modelThread) {
	t.Helper()
	names := map[*modelThread]string{}
	for i, m := range stored {
		now, err := s.Message(t.Context(), m.AccountID, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		model := want[i].whole()
		if names[model] == "" {
			for other, name := range names {
				if name == now.ThreadID {
					t.Errorf("mail %d is in the thread of %p, which the model keeps apart", i, other)
				}
			}
			names[model] = now.ThreadID
		}
		if names[model] != now.ThreadID {
			t.Errorf("mail %d is in thread %s, in the model in that of %s", i, now.ThreadID, names[model])
		}
	}
}
