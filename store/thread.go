package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store/internal/batch"
	"github.com/postroom/postroom/store/internal/engine"
)

const (
	threadColumns = `t.seq, t.inbox_seq, t.id, t.subject, t.subject_hash, t.participants, t.message_count`

	expectIn     = `SELECT i.seq FROM inboxes i WHERE i.seq IN ({rows}) AND EXISTS (SELECT 1 FROM thread_references r WHERE r.inbox_seq = i.seq)`
	threadsBySeq = `SELECT ` + threadColumns + `, '' FROM threads t WHERE t.seq IN ({rows})`
	// Of the messages of an inbox with the same Message-ID the oldest few are
	// checked. Of the latest 1000 threads those with the same subject are checked for
	// a shared participant, at most 50. So no one can make a lookup slow by sending more.
	headerMatch  = `inbox_seq = k.a AND header_hash = k.b AND NOT quarantined ORDER BY seq LIMIT 5`
	subjectMatch = `seq IN (SELECT seq FROM
		(SELECT seq, subject_hash FROM threads WHERE inbox_seq = k.a AND last_message_at >= {n} ORDER BY last_message_at DESC, seq DESC LIMIT 1000) l
		WHERE subject_hash = k.b LIMIT 50)`

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
// merges them. Threads never span inboxes. A message in quarantine has a thread to itself,
// which no list shows.
func (b *hotBatch) joinThreads(ctx context.Context) error {
	ix := newThreadIndex()
	if err := b.readThreads(ctx, ix); err != nil {
		return err
	}
	var w threadWrite
	for _, h := range b.messages {
		if h.quarantined() {
			h.thread = &hotThread{
				inbox: h.inbox, id: NewID("thr_", b.now.Time), subjectHash: hash64(h.msg.ID), isNew: true, joined: 1,
			}
			w.list(h.thread)
			h.expects = nil
			continue
		}
		t := ix.find(h)
		if t == nil {
			t = &hotThread{
				inbox: h.inbox, id: NewID("thr_", b.now.Time), subject: h.msg.Subject, subjectHash: h.subjectHash, isNew: true,
			}
			ix.add(t)
		}
		t = w.merge(t, ix.waitingFor(h))
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
// these. Those of Amazon SES come again at the end, in the form in which a delivery
// attempt recorded them.
func earlier(r References) []string {
	ids := slices.Clone(r.References)
	slices.Reverse(ids)
	ids = append(slices.Clone(r.InReplyTo), ids...)
	if len(ids) > maxReferences {
		ids = slices.Delete(ids, maxReferences-maxRoots, len(ids)-maxRoots)
	}
	for _, id := range ids {
		if relayed := mail.WithoutSESRegion(id); relayed != "" {
			ids = append(ids, relayed)
		}
	}
	return ids
}

// readThreads fills ix with every thread that the batch may join.
func (b *hotBatch) readThreads(ctx context.Context, ix *threadIndex) error {
	var seqs, headers, expected, subjects [][2]int64
	for _, h := range b.messages {
		if h.quarantined() {
			continue
		}
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
	expected, err := b.mayExpect(ctx, expected)
	if err != nil {
		return err
	}
	if err := hot.byExpected.Find(ctx, b.tx, batch.Sorted(append(expected, headers...)), await); err != nil {
		return errIn("threads by expected mail", err)
	}
	since := b.now.Add(-subjectWindow).UnixMicro()
	return errIn("threads by subject", hot.bySubject.Find(ctx, b.tx, batch.Sorted(subjects), add, since))
}

// mayExpect leaves out the keys of inboxes in which no thread expects mail, where
// that is known.
func (b *hotBatch) mayExpect(ctx context.Context, keys [][2]int64) ([][2]int64, error) {
	if b.ahead != nil {
		return slices.DeleteFunc(keys, func(key [2]int64) bool { return !b.ahead.expected[key] }), nil
	}
	if !b.store.engine.Alone() {
		return keys, nil
	}
	k := &b.store.known
	var ask [][2]int64
	for _, key := range keys {
		if _, known := k.expected[key[0]]; !known {
			ask = append(ask, [2]int64{key[0]})
		}
	}
	ask = batch.Sorted(ask)
	for _, key := range ask {
		note(&k.expected, key[0], false)
	}
	err := b.store.hot.expectIn.Find(ctx, b.tx, ask, func(rows *sql.Rows) error {
		var inbox int64
		err := rows.Scan(&inbox)
		note(&k.expected, inbox, true)
		return err
	})
	return slices.DeleteFunc(keys, func(key [2]int64) bool {
		expects, known := k.expected[key[0]]
		return known && !expects
	}), errIn("inboxes that expect mail", err)
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
func participants(a mail.Addresses) []string {
	ps := make([]string, 0, 2)
	if a.From != nil && a.From.Email != "" {
		ps = append(ps, strings.ToLower(a.From.Email))
	}
	for _, list := range [][]mail.Address{a.To, a.Cc} {
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
	if err := b.rows.Insert(ctx, &b.store.hot.threads, rows); err != nil {
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

// Thread is messages of an inbox that belong together.
type Thread struct {
	Seq           int64          `db:"seq"`
	InboxID       string         `db:"inbox_id"`
	ID            string         `db:"id"`
	Subject       string         `db:"subject"`      // of its first message
	Participants  JSON[[]string] `db:"participants"` // addresses in the order in which they joined
	MessageCount  int64          `db:"message_count"`
	LastMessageAt Time           `db:"last_message_at"`
	CreatedAt     Time           `db:"created_at"`
	LatestSeq     int64          `db:"latest_seq"`

	// Latest is the latest message, with the summary of its content.
	Latest Message `db:"-"`
}

const (
	// A thread without a message is one whose last was deleted just now.
	listedThreads = `SELECT * FROM (
		SELECT t.seq, i.id AS inbox_id, t.id, t.subject, t.participants, t.message_count, t.last_message_at, t.created_at,
			coalesce((SELECT m.seq FROM messages m WHERE m.thread_seq = t.seq AND NOT m.quarantined ORDER BY m.created_at DESC, m.seq DESC LIMIT 1), 0)
				AS latest_seq
		FROM threads t JOIN inboxes i ON i.seq = t.inbox_seq
		WHERE t.inbox_seq = $1`
	andMessages = `) x WHERE latest_seq > 0`
)

// ListThreads returns a page of the inbox's threads, the one with the latest
// message first.
func (s *Store) ListThreads(ctx context.Context, in Inbox, p Page) (List[Thread], error) {
	scope := fmt.Sprintf("threads/%d/%d", in.AccountID, in.Seq)
	before, err := s.before(scope, p.Cursor)
	if err != nil {
		return List[Thread]{}, err
	}
	q := listedThreads + ` AND (t.last_message_at, t.seq) < ($2, $3)` + andMessages +
		` ORDER BY last_message_at DESC, seq DESC LIMIT $4`
	rows, err := readAll[Thread](ctx, s, "list threads", q, in.Seq, before.At, before.Seq, p.Limit+1)
	if err != nil {
		return List[Thread]{}, err
	}
	l := page(s, scope, p.Limit, rows, func(t Thread) position { return position{t.LastMessageAt.UnixMicro(), t.Seq} })
	err = s.fillLatest(ctx, l.Rows)
	l.Rows = slices.DeleteFunc(l.Rows, func(t Thread) bool { return t.Latest.Seq == 0 }) // deleted meanwhile
	return l, err
}

// Thread returns one thread of the inbox, and its messages with their content,
// oldest first: the latest ThreadMessages of them.
func (s *Store) Thread(ctx context.Context, in Inbox, id string) (Thread, []Message, error) {
	q := listedThreads + ` AND t.id = $2` + andMessages
	one := make([]Thread, 1)
	if err := s.read.GetContext(ctx, &one[0], q, in.Seq, id); err != nil {
		return Thread{}, nil, s.wrap(err, "thread")
	}
	if err := s.fillLatest(ctx, one); err != nil {
		return Thread{}, nil, err
	}
	if one[0].Latest.Seq == 0 {
		return Thread{}, nil, fmt.Errorf("thread: %w", ErrNotFound) // deleted meanwhile
	}
	l, err := s.ListMessages(ctx, MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq, ThreadID: id, WithText: true}, Page{Limit: ThreadMessages})
	slices.Reverse(l.Rows)
	return one[0], l.Rows, err
}

func (s *Store) fillLatest(ctx context.Context, ts []Thread) error {
	ms, err := s.messagesBySeq(ctx, each(ts, func(t Thread) int64 { return t.LatestSeq }), nil, true)
	if err != nil {
		return err
	}
	bySeq := keyed(ms, seqOfMessage)
	for i := range ts {
		if m := bySeq[ts[i].LatestSeq]; m != nil {
			ts[i].Latest = *m
		}
	}
	return nil
}

// shrinkThreads takes deleted messages out of their threads, and deletes the
// threads that have no others.
func shrinkThreads(ctx context.Context, tx *sqlx.Tx, gone []oldMessage) error {
	const (
		count = `UPDATE threads SET message_count = message_count - $2 WHERE seq = $1 RETURNING message_count`
		empty = `DELETE FROM threads WHERE seq IN (?) AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_seq = threads.seq)`
	)
	lost := map[int64]int{}
	for _, m := range gone {
		lost[m.ThreadSeq]++
	}
	threads := rising(gone, func(m oldMessage) int64 { return m.ThreadSeq })
	for _, seq := range threads {
		var left int
		if err := tx.GetContext(ctx, &left, count, seq, lost[seq]); err != nil {
			return errIn("count a thread", err)
		}
		if left == 0 {
			continue
		}
		if err := refreshThread(ctx, tx, seq, left <= maxRefreshed); err != nil {
			return errIn("update a thread", err)
		}
	}
	return errIn("delete empty threads", execIn(ctx, tx, empty, threads))
}

// refreshThread updates a thread after messages were deleted from it. It updates
// the participants only if people is true.
func refreshThread(ctx context.Context, tx *sqlx.Tx, threadSeq int64, people bool) error {
	const update = `
		UPDATE threads
		   SET last_message_at = (SELECT max(m.created_at) FROM messages m WHERE m.thread_seq = $1),
		       subject = (SELECT m.subject FROM messages m WHERE m.thread_seq = $1 ORDER BY m.created_at, m.seq LIMIT 1)
		 WHERE seq = $1`
	if _, err := tx.ExecContext(ctx, update, threadSeq); err != nil || !people {
		return err
	}
	var all JSON[[]string]
	if err := tx.GetContext(ctx, &all, `SELECT participants FROM threads WHERE seq = $1`, threadSeq); err != nil {
		return err
	}
	gone, err := nowhereIn(ctx, tx, threadSeq, slices.Clone(all.V))
	if err != nil || len(gone) == 0 {
		return err
	}
	all.V = slices.DeleteFunc(all.V, func(p string) bool { return slices.Contains(gone, p) })
	_, err = tx.ExecContext(ctx, `UPDATE threads SET participants = $2 WHERE seq = $1`, threadSeq, all)
	return err
}

// nowhereIn returns those of the people who stand in no message of the thread.
// It reads the newest messages first, and stops when all are found.
func nowhereIn(ctx context.Context, tx *sqlx.Tx, threadSeq int64, people []string) ([]string, error) {
	const q = `SELECT addresses FROM messages WHERE thread_seq = $1 ORDER BY created_at DESC`
	rows, err := tx.QueryContext(ctx, q, threadSeq)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for len(people) > 0 && rows.Next() {
		var raw sql.RawBytes
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		var a mail.Addresses
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, fmt.Errorf("addresses of a message: %w", err)
		}
		there := participants(a)
		people = slices.DeleteFunc(people, func(p string) bool { return slices.Contains(there, p) })
	}
	return people, errors.Join(rows.Err(), rows.Close())
}

// threadsByExpected finds threads by pairs of inbox and hash of the Message-ID
// of mail that their mail refers to and that has not come.
func threadsByExpected(d engine.Engine) string {
	return `WITH k (a, b) AS (VALUES {rows}) SELECT ` + threadColumns + `, r.header_id
		FROM k CROSS JOIN thread_references r JOIN threads t ON t.seq = r.thread_seq WHERE r.inbox_seq = k.a AND r.header_hash = k.b`
}

func newThreadIndex() *threadIndex {
	return &threadIndex{map[headerKey]*hotThread{}, map[headerKey]*hotThread{}, map[subjectKey][]*hotThread{}, map[int64]*hotThread{}}
}

// mayBeExpected reports whether mail that came before may refer to the message.
// To what we send no one can.
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
		if id == "" || mail.IsSESMessageID(id) || h.newThread || ix.byHeader[k] != nil || ix.expected[k] != nil || len(h.expects) == maxExpected {
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

// merge makes one of the thread that a message joins and the one that waits for
// it, which may be none. The smaller becomes part of the larger, so that the
// cost of a message stays small on average; of two alike the older one stays.
// Two that both have more than maxMerged messages stay two.
func (w *threadWrite) merge(t, other *hotThread) *hotThread {
	if other == nil || other == t {
		return t
	}
	stays, goes := t, other
	if a, b := t.had+t.joined, other.had+other.joined; t.isNew && !other.isNew || t.isNew == other.isNew && (b > a || b == a && other.seq < t.seq) {
		stays, goes = other, t
	}
	if goes.had > maxMerged {
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

func (t *hotThread) meet(people []string) {
	for _, p := range people {
		if len(t.people) < maxParticipants && !slices.Contains(t.people, p) {
			t.people = append(t.people, p)
		}
	}
}

// mergeThreads moves the messages and drafts of threads that became part of
// others. The inboxes are locked, so that nothing is added meanwhile.
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
		if len(h.expects) > 0 {
			delete(b.store.known.expected, h.inbox.seq)
		}
		for _, id := range h.expects {
			rows = append(rows, h.inbox.seq, hash64(id), id, h.msg.ThreadSeq)
		}
	}
	return errIn("expect mail", b.rows.Insert(ctx, &b.store.hot.references, rows))
}
