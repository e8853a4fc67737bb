package store

import (
	"context"
	"slices"

	"github.com/postroom/postroom/store/internal/engine"
)

// tieMost is up to how many messages the smaller of two threads may have that
// become one: they are moved while other mail waits. Larger ones stay two.
const tieMost = 200

// maxExpected bounds how many Message-IDs of mail that is not there one message
// may leave behind.
const maxExpected = 20

// threadsByExpected finds threads by pairs of inbox and hash of the Message-ID
// of mail that their mail refers to and that has not come.
func threadsByExpected(d engine.Engine) string {
	return `WITH k (a, b) AS (VALUES {rows}) SELECT ` + threadColumns + `, r.header_id
		FROM k CROSS JOIN thread_references r JOIN threads t ON t.seq = r.thread_seq WHERE r.inbox_seq = k.a AND r.header_hash = k.b`
}

func newThreadIndex() *threadIndex {
	return &threadIndex{map[headerKey]*hotThread{}, map[headerKey]*hotThread{}, map[subjectKey][]*hotThread{}, map[int64]*hotThread{}}
}

// mayBeExpected says whether mail that came before may refer to the message. To
// what we send nobody can.
func (h *hotMessage) mayBeExpected() bool {
	return h.msg.Direction == DirectionIn && h.msg.HeaderID != "" && !h.newThread
}

// waitingFor returns the thread whose mail refers to the message, nil for none.
func (ix *threadIndex) waitingFor(h *hotMessage) *hotThread {
	if !h.mayBeExpected() {
		return nil
	}
	return ix.expected[headerKey{h.inbox.seq, h.msg.HeaderID}].whole()
}

// note lets the next messages of the batch find the thread of this one.
func (ix *threadIndex) note(h *hotMessage) {
	if h.msg.HeaderID != "" {
		ix.byHeader[headerKey{h.inbox.seq, h.msg.HeaderID}] = h.thread
	}
	h.expects = nil
	for _, id := range h.refersTo {
		k := headerKey{h.inbox.seq, id}
		if id == "" || h.newThread || ix.byHeader[k] != nil || ix.expected[k] != nil || len(h.expects) == maxExpected {
			continue
		}
		ix.expected[k] = h.thread
		h.expects = append(h.expects, id)
	}
}

// whole returns the thread that t became part of, or t.
func (t *hotThread) whole() *hotThread {
	for t != nil && t.into != nil {
		t = t.into
	}
	return t
}

// tie makes one of the thread that a message joins and the one that waits for
// it, which may be none. The smaller becomes part of the larger, so that the
// cost of a message stays small on average; of two alike the older one stays.
// Two that both have more than tieMost messages stay two.
func (w *threadWrite) tie(t, other *hotThread) *hotThread {
	if other == nil || other == t {
		return t
	}
	stays, goes := t, other
	if a, b := t.had+t.joined, other.had+other.joined; t.isNew && !other.isNew || t.isNew == other.isNew && (b > a || b == a && other.seq < t.seq) {
		stays, goes = other, t
	}
	if goes.had > tieMost {
		return t
	}
	goes.into = stays
	if !goes.isNew {
		w.merges = append(w.merges, [2]*hotThread{goes, stays})
	}
	w.list(stays)
	stays.joined += goes.joined
	if !goes.isNew {
		stays.joined += goes.had
	}
	stays.meet(goes.people)
	return stays
}

// list notes a thread that the batch changes.
func (w *threadWrite) list(t *hotThread) {
	if !t.listed {
		t.listed = true
		w.threads = append(w.threads, t)
	}
}

// meet adds to the people of a thread.
func (t *hotThread) meet(people []string) {
	for _, p := range people {
		if len(t.people) < maxParticipants && !slices.Contains(t.people, p) {
			t.people = append(t.people, p)
		}
	}
}

// mergeThreads moves the messages and drafts of threads that became part of
// others. The inboxes are held, so nobody adds to them meanwhile.
func (b *hotBatch) mergeThreads(ctx context.Context, merges [][2]*hotThread) error {
	for _, m := range merges {
		from, to := m[0], m[1].whole()
		for _, q := range []string{
			`UPDATE messages SET thread_seq = $1 WHERE thread_seq = $2`,
			`UPDATE thread_references SET thread_seq = $1 WHERE thread_seq = $2`,
		} {
			if _, err := b.tx.ExecContext(ctx, q, to.seq, from.seq); err != nil {
				return err
			}
		}
		const drafts = `UPDATE drafts SET thread_seq = $1, thread_id = $2 WHERE inbox_seq = $3 AND thread_seq = $4`
		if _, err := b.tx.ExecContext(ctx, drafts, to.seq, to.id, from.inbox.seq, from.seq); err != nil {
			return err
		}
		if _, err := b.tx.ExecContext(ctx, `DELETE FROM threads WHERE seq = $1`, from.seq); err != nil {
			return err
		}
	}
	return nil
}

// expect writes down what mail the messages of the batch refer to that is not
// there.
func (b *hotBatch) expect(ctx context.Context) error {
	var rows []any
	for _, h := range b.messages {
		for _, id := range h.expects {
			rows = append(rows, h.inbox.seq, hash64(id), id, h.msg.ThreadSeq)
		}
	}
	return errIn("expect mail", b.store.hot.references.Exec(ctx, b.tx, rows))
}
