package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/store/internal/batch"
	"github.com/postroom/postroom/store/internal/engine"
)

const (
	// subjectWindow is how long mail with the same subject may join a thread.
	subjectWindow = 14 * 24 * time.Hour
	// maxParticipants bounds what a thread remembers.
	maxParticipants = 100
	// maxReferences bounds how many earlier messages are looked up for one, and
	// maxRoots how many of them are the oldest that it names.
	maxReferences = 50
	maxRoots      = 10
)

const (
	threadColumns = `t.seq, t.inbox_seq, t.id, t.subject, t.subject_hash, t.participants, t.message_count`

	threadsBySeq = `SELECT ` + threadColumns + `, '' FROM threads t WHERE t.seq IN ({rows})`
	// Of the messages of an inbox with the same Message-ID the oldest few are
	// looked at, and of the threads with the same subject the newest 50, for a
	// shared participant: nobody can make a lookup slow by sending more of them.
	headerMatch  = `inbox_seq = k.a AND header_hash = k.b ORDER BY seq LIMIT 5`
	subjectMatch = `inbox_seq = k.a AND subject_hash = k.b AND last_message_at >= {n} ORDER BY last_message_at DESC LIMIT 50`

	updateThread = `
	UPDATE threads SET message_count = message_count + $2, last_message_at = $3, participants = $4 WHERE seq = $1`
)

// threadsByHeader finds threads by pairs of inbox and hash of a Message-ID,
// threadsBySubject by pairs of inbox and hash of a subject.
func threadsByHeader(d engine.Engine) string {
	return `WITH k (a, b) AS (VALUES {rows}) SELECT ` + threadColumns + `, m.header_id
		FROM k ` + d.Lateral("messages", "m", headerMatch) + ` JOIN threads t ON t.seq = m.thread_seq ORDER BY m.seq DESC`
}

func threadsBySubject(d engine.Engine) string {
	return `WITH k (a, b) AS (VALUES {rows}) SELECT ` + threadColumns + `, ''
		FROM k ` + d.Lateral("threads", "t", subjectMatch) + ` ORDER BY t.last_message_at DESC, t.seq DESC`
}

// hotThread is a thread that messages of a batch join or begin.
type hotThread struct {
	seq         int64
	inbox       *hotInbox
	id          string
	subject     string
	subjectHash int64
	people      []string
	isNew       bool
	had         int64      // messages before this batch
	joined      int64      // messages of this batch
	into        *hotThread // the thread that it became part of
	listed      bool       // in the batch's threadWrite
}

// threadIndex finds threads for the messages of a batch.
type threadIndex struct {
	byHeader  map[headerKey]*hotThread    // of mail that is there
	expected  map[headerKey]*hotThread    // of mail that is not
	bySubject map[subjectKey][]*hotThread // newest first, those of this batch last
	bySeq     map[int64]*hotThread
}

type headerKey struct {
	inbox  int64
	header string
}

type subjectKey struct {
	inbox, hash int64
}

// joinThreads sets the thread of each message, by the first rule that finds one: the
// thread that the caller set; that of the newest message that this one refers to;
// that of messages that refer to this one; a thread with the same subject and a
// shared participant, if the subject of this one has a reply mark, it refers to no
// message, and no program sent it; a new thread. A message that connects two threads
// merges them. Threads never span inboxes.
func (b *hotBatch) joinThreads(ctx context.Context) error {
	ix := newThreadIndex()
	if err := b.readThreads(ctx, ix); err != nil {
		return err
	}
	var w threadWrite
	for _, h := range b.messages {
		t := ix.find(h)
		if t == nil {
			t = &hotThread{
				inbox: h.inbox, id: NewID("thr_", b.now.Time), subject: h.msg.Subject, subjectHash: h.subjectHash, isNew: true,
			}
			ix.add(t)
		}
		t = w.tie(t, ix.waitingFor(h))
		w.list(t)
		t.join(h)
		h.thread = t
		ix.note(h)
	}
	if err := b.writeThreads(ctx, &w); err != nil {
		return err
	}
	for _, h := range b.messages {
		h.thread = h.thread.whole()
		h.msg.ThreadSeq, h.msg.ThreadID = h.thread.seq, h.thread.id
	}
	return b.expect(ctx)
}

// earlier returns the Message-IDs that a message refers to, the likeliest
// first. Of many the newest and the oldest count: who shortens the list keeps
// these.
func earlier(r References) []string {
	ids := slices.Clone(r.References)
	slices.Reverse(ids)
	ids = append(slices.Clone(r.InReplyTo), ids...)
	if len(ids) > maxReferences {
		ids = slices.Delete(ids, maxReferences-maxRoots, len(ids)-maxRoots)
	}
	return ids
}

// readThreads fills ix with every thread that the batch may join.
func (b *hotBatch) readThreads(ctx context.Context, ix *threadIndex) error {
	var seqs, headers, expected, subjects [][2]int64
	for _, h := range b.messages {
		if h.mayBeExpected() {
			expected = append(expected, [2]int64{h.inbox.seq, hash64(h.msg.HeaderID)})
		}
		if h.newThread {
			continue
		}
		if h.joinThread != 0 {
			seqs = append(seqs, [2]int64{h.joinThread})
		}
		for _, id := range h.refersTo {
			headers = append(headers, [2]int64{h.inbox.seq, hash64(id)})
		}
		if h.mayBySubj {
			subjects = append(subjects, [2]int64{h.inbox.seq, h.subjectHash})
		}
	}
	hot := &b.store.hot
	add := func(rows *sql.Rows) error { return b.addThread(ix, ix.byHeader, rows) }
	if err := hot.bySeq.Find(ctx, b.tx, batch.Sorted(seqs), add); err != nil {
		return errIn("threads", err)
	}
	if err := hot.byHeader.Find(ctx, b.tx, batch.Sorted(headers), add); err != nil {
		return errIn("threads by reference", err)
	}
	await := func(rows *sql.Rows) error { return b.addThread(ix, ix.expected, rows) }
	if err := hot.byExpected.Find(ctx, b.tx, batch.Sorted(append(expected, headers...)), await); err != nil {
		return errIn("threads by expected mail", err)
	}
	since := b.now.Add(-subjectWindow).UnixMicro()
	return errIn("threads by subject", hot.bySubject.Find(ctx, b.tx, batch.Sorted(subjects), add, since))
}

// addThread adds a thread that was found to ix, and to known by the Message-ID
// by which it was found.
func (b *hotBatch) addThread(ix *threadIndex, known map[headerKey]*hotThread, row *sql.Rows) error {
	var t hotThread
	var inbox int64
	var people JSON[[]string]
	var header string
	if err := row.Scan(&t.seq, &inbox, &t.id, &t.subject, &t.subjectHash, &people, &t.had, &header); err != nil {
		return err
	}
	t.people = people.V
	if t.inbox = b.inboxes[inbox]; t.inbox == nil {
		return nil // asked for by its number, but of another inbox
	}
	found := ix.add(&t)
	if header != "" {
		known[headerKey{inbox, header}] = found
	}
	return nil
}

// add puts t into the index, or returns the one that is there already.
func (ix *threadIndex) add(t *hotThread) *hotThread {
	if !t.isNew {
		if known := ix.bySeq[t.seq]; known != nil {
			return known
		}
		ix.bySeq[t.seq] = t
	}
	k := subjectKey{t.inbox.seq, t.subjectHash}
	ix.bySubject[k] = append(ix.bySubject[k], t)
	return t
}

func (ix *threadIndex) find(h *hotMessage) *hotThread {
	if h.newThread {
		return nil
	}
	if h.joinThread != 0 {
		if t := ix.bySeq[h.joinThread]; t != nil && t.inbox == h.inbox {
			return t.whole()
		}
		// It has become part of another since it was asked for.
	}
	for _, known := range []map[headerKey]*hotThread{ix.byHeader, ix.expected} { // mail that is there counts more
		for _, id := range h.refersTo {
			if t := known[headerKey{h.inbox.seq, id}]; t != nil {
				return t.whole()
			}
		}
	}
	if t := ix.waitingFor(h); t != nil {
		return t
	}
	if !h.mayBySubj {
		return nil
	}
	for _, t := range ix.bySubject[subjectKey{h.inbox.seq, h.subjectHash}] {
		shared := func(p string) bool { return p != h.inbox.address && slices.Contains(t.people, p) }
		if slices.ContainsFunc(h.people, shared) {
			return t.whole()
		}
	}
	return nil
}

// participants are the addresses in a header, Bcc left out, lower case.
func participants(a Addresses) []string {
	ps := make([]string, 0, 2)
	if a.From != nil && a.From.Email != "" {
		ps = append(ps, strings.ToLower(a.From.Email))
	}
	for _, list := range [][]Address{a.To, a.Cc} {
		for _, addr := range list[:min(len(list), maxParticipants)] {
			ps = append(ps, strings.ToLower(addr.Email))
		}
	}
	return ps
}

func (t *hotThread) join(h *hotMessage) {
	t.joined++
	t.meet(h.people)
}

// threadWrite is what the messages of a batch do to threads.
type threadWrite struct {
	threads []*hotThread    // that messages joined or began
	merges  [][2]*hotThread // each first one into the second
}

// writeThreads inserts the new threads, which get their numbers here, updates
// the others and puts those together that were tied.
func (b *hotBatch) writeThreads(ctx context.Context, w *threadWrite) error {
	gone := func(t *hotThread) bool { return t.into != nil }
	isNew := func(t *hotThread) bool { return t.isNew }
	all := slices.DeleteFunc(w.threads, gone)
	if err := b.updateThreads(ctx, slices.DeleteFunc(slices.Clone(all), isNew)); err != nil {
		return errIn("update thread", err)
	}
	fresh := slices.DeleteFunc(all, func(t *hotThread) bool { return !t.isNew })
	rows := make([]any, 0, len(fresh)*b.store.hot.threads.Columns)
	for i, t := range fresh {
		t.seq = b.threads[i]
		people, err := json.Marshal(t.people)
		if err != nil {
			return fmt.Errorf("write participants: %w", err)
		}
		at := t.inbox.at.UnixMicro()
		rows = append(rows, t.seq, t.inbox.accountID, t.inbox.seq, t.id, t.subject, t.subjectHash, string(people), t.joined, at, at)
	}
	if err := b.store.hot.threads.Exec(ctx, b.tx, rows); err != nil {
		return errIn("insert threads", err)
	}
	return errIn("put threads together", b.mergeThreads(ctx, w.merges))
}

func (b *hotBatch) updateThreads(ctx context.Context, joined []*hotThread) error {
	if len(joined) == 0 {
		return nil
	}
	update := b.tx.StmtContext(ctx, b.store.hot.updateThread)
	for _, t := range joined {
		people, err := json.Marshal(t.people)
		if err != nil {
			return err
		}
		if _, err := update.ExecContext(ctx, t.seq, t.joined, t.inbox.at.UnixMicro(), string(people)); err != nil {
			return err
		}
	}
	return nil
}
