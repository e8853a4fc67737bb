package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/mail"
)

// thread is a thread that a message joins or begins.
type thread struct {
	Seq          int64          `db:"seq"`
	ID           string         `db:"id"`
	Participants JSON[[]string] `db:"participants"`
	MessageCount int64          `db:"message_count"`
	// HeaderID is the Message-ID by which the thread was found. Message is the number
	// of the message that has it, 0 if others refer to it and it has not come.
	HeaderID string `db:"header_id"`
	Message  int64  `db:"message"`
}

const threadColumns = `t.seq, t.id, t.participants, t.message_count`

// joinThread sets the thread of a message, whose inbox is locked, by the first rule
// that finds one: the thread that the caller set; that of the newest message that this
// one refers to; that of messages that refer to this one; a thread with the same subject
// and a shared participant, if the subject of this one has a reply mark, it refers to no
// message, and no program sent it; a new thread, whose number is seq. A message that
// connects two threads merges them. Threads never span inboxes. A message in quarantine
// has a thread to itself, which no list shows.
//
// awaited reports that threads of the inbox refer to the message. joinThread returns the
// rows that are yet to be inserted.
func (s *Store) joinThread(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, seq int64, awaited bool) ([]newRow, error) {
	if h.quarantined() {
		return h.beginThread(seq, "", hash64(h.msg.ID), nil)
	}
	known, err := s.threadsByID(ctx, tx, h, awaited && h.mayBeExpected())
	if err != nil {
		return nil, errIn("threads by reference", err)
	}
	t, err := s.threadFor(ctx, tx, h, known)
	if err != nil {
		return nil, err
	}
	if t == nil {
		rows, err := h.beginThread(seq, h.msg.Subject, h.subjectHash, h.people)
		return append(rows, h.references(known)...), err
	}
	if t, err = s.mergeThreads(ctx, tx, h, t, known.waitingFor(h)); err != nil {
		return nil, errIn("put threads together", err)
	}
	if err := s.limitThread(ctx, tx, h, t); err != nil {
		return nil, err
	}
	h.msg.ThreadSeq, h.msg.ThreadID = t.Seq, t.ID
	t.meet(h.people)
	const update = `UPDATE threads SET message_count = $2, last_message_at = $3, participants = $4 WHERE seq = $1`
	if _, err := s.prepared.Exec(ctx, tx, update, t.Seq, t.MessageCount+1, h.inbox.at.UnixMicro(), t.Participants); err != nil {
		return nil, errIn("update thread", err)
	}
	return h.references(known), nil
}

// beginThread returns the row of a new thread for the message.
func (h *preparedMessage) beginThread(seq int64, subject string, subjectHash int64, people []string) ([]newRow, error) {
	at := h.inbox.at.UnixMicro()
	h.msg.ThreadSeq, h.msg.ThreadID = seq, NewID("thr_", h.inbox.at.Time)
	var t thread
	t.meet(people)
	all, err := json.Marshal(t.Participants.V)
	return []newRow{{into: intoThreads, values: []any{
		seq, h.msg.AccountID, h.inbox.seq, h.msg.ThreadID, subject, subjectHash, string(all), int64(1), at, at,
	}}}, errIn("write participants", err)
}

// knownThreads are threads by the Message-IDs by which they were found.
type knownThreads struct {
	here     map[string]*thread // of mail that is there
	expected map[string]*thread // of mail that is not
}

// threadsByID returns the threads of the messages that this one refers to and, if it is
// awaited, those that refer to it. Of the messages of an inbox with the same Message-ID
// the oldest few are checked, so that no one can make a lookup slow by sending more.
func (s *Store) threadsByID(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, awaited bool) (known knownThreads, err error) {
	var ids []int64
	if !h.newThread {
		ids = each(h.refersTo, hash64)
	}
	if len(ids) == 0 && !awaited {
		return known, nil
	}
	awaits := ids
	if awaited {
		awaits = append(slices.Clone(ids), hash64(h.msg.HeaderID))
	}
	e := s.engine
	q := `WITH k (hash) AS (` + e.Each("$2") + `) SELECT ` + threadColumns + `, m.header_id, m.seq AS message
		FROM k ` + e.Lateral("messages", "m", `inbox_seq = $1 AND header_hash = k.hash AND NOT quarantined ORDER BY seq LIMIT 5`) + `
		JOIN threads t ON t.seq = m.thread_seq
		UNION ALL SELECT ` + threadColumns + `, r.header_id, 0 FROM thread_references r JOIN threads t ON t.seq = r.thread_seq
		WHERE r.inbox_seq = $1 AND ` + e.OneOf("r.header_hash", "$3")
	var found []thread
	if err := s.prepared.Select(ctx, tx, &found, q, h.inbox.seq, e.List(ids), e.List(awaits)); err != nil {
		return known, err
	}
	known = knownThreads{map[string]*thread{}, map[string]*thread{}}
	for i := range found {
		t := &found[i]
		other := known.here[t.HeaderID]
		switch {
		case t.HeaderID == "":
		case t.Message == 0:
			known.expected[t.HeaderID] = t
		case other == nil || t.Message < other.Message:
			known.here[t.HeaderID] = t
		}
	}
	return known, nil
}

// waitingFor returns the thread whose mail refers to the message, nil for none.
func (k *knownThreads) waitingFor(h *preparedMessage) *thread {
	if !h.mayBeExpected() {
		return nil
	}
	return k.expected[h.msg.HeaderID]
}

// threadFor returns the thread that the message joins, nil for none.
func (s *Store) threadFor(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, known knownThreads) (*thread, error) {
	// Of the latest 1000 threads those with the same subject are checked for a shared
	// participant, at most 50.
	const (
		named     = `SELECT ` + threadColumns + ` FROM threads t WHERE t.seq = $1 AND t.inbox_seq = $2`
		bySubject = `SELECT ` + threadColumns + ` FROM threads t WHERE t.seq IN (SELECT seq FROM (
				SELECT seq, subject_hash FROM threads WHERE inbox_seq = $1 AND last_message_at >= $3
				 ORDER BY last_message_at DESC, seq DESC LIMIT 1000) l
			 WHERE subject_hash = $2 LIMIT 50)
			ORDER BY t.last_message_at DESC, t.seq DESC`
	)
	if h.newThread {
		return nil, nil //nolint:nilnil // none
	}
	var found []thread
	if h.joinThread != 0 {
		err := s.prepared.Select(ctx, tx, &found, named, h.joinThread, h.inbox.seq)
		if err != nil || len(found) > 0 { // else it has become part of another since it was asked for
			return first(found), errIn("thread", err)
		}
	}
	for _, threads := range []map[string]*thread{known.here, known.expected} { // mail that is there counts more
		for _, id := range h.refersTo {
			if t := threads[id]; t != nil {
				return t, nil
			}
		}
	}
	if t := known.waitingFor(h); t != nil || !h.mayBySubj {
		return t, nil
	}
	since := NewTime(s.now().Add(-subjectWindow))
	if err := s.prepared.Select(ctx, tx, &found, bySubject, h.inbox.seq, h.subjectHash, since); err != nil {
		return nil, errIn("threads by subject", err)
	}
	for i := range found {
		t := &found[i]
		shared := func(p string) bool { return p != h.inbox.address && slices.Contains(t.Participants.V, p) }
		if slices.ContainsFunc(h.people, shared) {
			return t, nil
		}
	}
	return nil, nil //nolint:nilnil // none
}

// mergeThreads makes one of the thread that a message joins and the one that waits for
// it, which may be none. The smaller becomes part of the larger, so that the cost of a
// message stays small on average; of two alike the older one stays. Two that both have
// more than maxMerged messages stay two.
func (s *Store) mergeThreads(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, t, other *thread) (*thread, error) {
	if other == nil || other.Seq == t.Seq {
		return t, nil
	}
	stays, goes := t, other
	if goes.MessageCount > stays.MessageCount || goes.MessageCount == stays.MessageCount && goes.Seq < stays.Seq {
		stays, goes = goes, stays
	}
	if goes.MessageCount > maxMerged {
		return t, nil
	}
	stays.MessageCount += goes.MessageCount
	stays.meet(goes.Participants.V)
	err := execAll(ctx, tx, []statement{
		{`UPDATE messages SET thread_seq = $1 WHERE thread_seq = $2`, []any{stays.Seq, goes.Seq}},
		{`UPDATE thread_references SET thread_seq = $1 WHERE thread_seq = $2`, []any{stays.Seq, goes.Seq}},
		{`UPDATE drafts SET thread_seq = $1, thread_id = $2 WHERE inbox_seq = $3 AND thread_seq = $4`, []any{stays.Seq, stays.ID, h.inbox.seq, goes.Seq}},
	})
	if err == nil {
		err = s.uniteLabels(ctx, tx, stays.Seq, goes.Seq)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, `DELETE FROM threads WHERE seq = $1`, goes.Seq)
	}
	return stays, err
}

// references are the rows of the mail that the message refers to and that is not there.
func (h *preparedMessage) references(known knownThreads) (rows []newRow) {
	if h.newThread {
		return nil
	}
	expected := map[string]bool{h.msg.HeaderID: true}
	for _, id := range h.refersTo {
		if id == "" || mail.IsSESMessageID(id) || expected[id] || known.here[id] != nil || known.expected[id] != nil {
			continue
		}
		expected[id] = true
		rows = append(rows, newRow{intoReferences, []any{h.inbox.seq, hash64(id), id, h.msg.ThreadSeq}, " ON CONFLICT DO NOTHING"})
		if len(rows) == maxExpected {
			break
		}
	}
	return rows
}

// limitThread refuses a message that would exceed the limit of sent messages in its
// thread, so that two programs cannot reply to each other for ever. The inbox is locked,
// so that nothing is added meanwhile.
func (s *Store) limitThread(ctx context.Context, tx *sqlx.Tx, h *preparedMessage, t *thread) error {
	const q = `SELECT count(*) FROM messages WHERE thread_seq = $1 AND direction = 'out' AND created_at > $2`
	if h.msg.Direction != DirectionOut {
		return nil
	}
	var sent int
	if err := s.prepared.Get(ctx, tx, &sent, q, t.Seq, NewTime(s.now().Add(-ThreadSendsWindow))); err != nil {
		return errIn("count the sends of a thread", err)
	}
	if sent >= MaxThreadSends {
		return refuse(RuleThread, "", "this inbox has sent %d messages to this thread within an hour", MaxThreadSends)
	}
	return nil
}

func (t *thread) meet(people []string) {
	for _, p := range people {
		if len(t.Participants.V) < maxParticipants && !slices.Contains(t.Participants.V, p) {
			t.Participants.V = append(t.Participants.V, p)
		}
	}
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

// mayBeExpected reports whether mail that came before may refer to the message.
// To what we send no one can.
func (h *preparedMessage) mayBeExpected() bool {
	return h.msg.Direction == DirectionIn && h.msg.HeaderID != "" && !h.newThread
}

// Thread is messages of an inbox that belong together.
type Thread struct {
	Seq           int64          `db:"seq"`
	InboxID       string         `db:"inbox_id"`
	ID            string         `db:"id"`
	Subject       string         `db:"subject"`      // of its first message
	Participants  JSON[[]string] `db:"participants"` // addresses in the order in which they joined
	Labels        JSON[[]string] `db:"labels"`
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
		SELECT t.seq, i.id AS inbox_id, t.id, t.subject, t.participants, t.labels, t.message_count, t.last_message_at, t.created_at,
			coalesce((SELECT m.seq FROM messages m WHERE m.thread_seq = t.seq AND NOT m.quarantined ORDER BY m.created_at DESC, m.seq DESC LIMIT 1), 0)
				AS latest_seq
		FROM threads t JOIN inboxes i ON i.seq = t.inbox_seq`
	andMessages = `) x WHERE latest_seq > 0`
)

// ListThreads returns a page of the inbox's threads, the one with the latest
// message first: all, or those with a label.
func (s *Store) ListThreads(ctx context.Context, in Inbox, label string, p Page) (List[Thread], error) {
	scope := fmt.Sprintf("threads/%d/%d/%q", in.AccountID, in.Seq, label)
	before, err := s.before(scope, p.Cursor)
	if err != nil {
		return List[Thread]{}, err
	}
	w := conditions("t.inbox_seq = ?", in.Seq)
	w.add("(t.last_message_at, t.seq) < (?, ?)", before.At, before.Seq)
	if label != "" {
		w.add("t.labels <> '[]'") // they have an index
		addLabel(w, "t.labels", label)
	}
	q := listedThreads + w.sql() + andMessages + ` ORDER BY last_message_at DESC, seq DESC LIMIT ` + w.arg(p.Limit+1)
	rows, err := readAll[Thread](ctx, s, "list threads", q, w.args...)
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
	t, err := s.oneThread(ctx, "t.inbox_seq = ? AND t.id = ?", in.Seq, id)
	if err != nil {
		return Thread{}, nil, err
	}
	l, err := s.ListMessages(ctx, MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq, ThreadID: id, WithText: true}, Page{Limit: ThreadMessages})
	slices.Reverse(l.Rows)
	return t, l.Rows, err
}

func (s *Store) oneThread(ctx context.Context, cond string, args ...any) (Thread, error) {
	w := conditions(cond, args...)
	one := make([]Thread, 1)
	if err := s.read.GetContext(ctx, &one[0], listedThreads+w.sql()+andMessages, w.args...); err != nil {
		return Thread{}, s.wrap(err, "thread")
	}
	if err := s.fillLatest(ctx, one); err != nil {
		return Thread{}, err
	}
	if one[0].Latest.Seq == 0 {
		return Thread{}, fmt.Errorf("thread: %w", ErrNotFound) // deleted meanwhile
	}
	return one[0], nil
}

// MarkThread changes the marks of a thread of the account, in one of these inboxes unless
// inboxIDs is nil. Its messages are marked as read or unread, but not labelled.
func (s *Store) MarkThread(ctx context.Context, accountID int64, inboxIDs []string, id string, c Marks) (Thread, error) {
	f := MessageFilter{AccountID: accountID, InboxIDs: inboxIDs, ThreadID: id}
	err := s.findThread(ctx, &f)
	if err == nil && f.threadSeq == 0 {
		err = fmt.Errorf("thread: %w", ErrNotFound)
	}
	if err != nil {
		return Thread{}, err
	}
	t, err := s.oneThread(ctx, "t.seq = ?", f.threadSeq)
	if err != nil {
		return Thread{}, err
	}
	err = s.inTx(ctx, "mark thread", func(tx *sqlx.Tx) (err error) {
		if c.Read != nil { // messages before their thread, as everywhere
			if err := s.markRead(ctx, tx, "thread_seq", t.Seq, c); err != nil {
				return err
			}
		}
		t.Labels.V, err = s.relabel(ctx, tx, "threads", t.Seq, c)
		return err
	})
	return t, err
}

// uniteLabels gives a thread the labels of one that becomes part of it, as many as it may
// have.
func (s *Store) uniteLabels(ctx context.Context, tx *sqlx.Tx, stays, goes int64) error {
	q := `SELECT labels FROM threads WHERE seq IN ($1, $2) ORDER BY seq` + s.engine.LockRow()
	var both []JSON[[]string]
	if err := tx.SelectContext(ctx, &both, q, stays, goes); err != nil {
		return errIn("labels of threads", err)
	}
	var all []string
	for _, labels := range both {
		all = append(all, labels.V...)
	}
	if all = sortedSet(all); len(all) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE threads SET labels = $2 WHERE seq = $1`, stays, JSON[[]string]{all[:min(len(all), MaxLabels)]})
	return errIn("unite labels", err)
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
	// Those who are left, in the order in which they joined.
	var addresses []JSON[mail.Addresses]
	if err := tx.SelectContext(ctx, &addresses, `SELECT addresses FROM messages WHERE thread_seq = $1 ORDER BY created_at, seq`, threadSeq); err != nil {
		return err
	}
	var t thread
	for _, a := range addresses {
		t.meet(participants(a.V))
	}
	_, err := tx.ExecContext(ctx, `UPDATE threads SET participants = $2 WHERE seq = $1`, threadSeq, t.Participants)
	return err
}
