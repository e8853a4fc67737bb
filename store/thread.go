package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// subjectWindow is how long mail with the same subject may join a thread.
	subjectWindow = 14 * 24 * time.Hour
	// maxParticipants bounds what a thread remembers.
	maxParticipants = 100
	// maxReferences bounds how many earlier messages are looked up for one.
	maxReferences = 50
)

const updateThread = `
	UPDATE threads SET message_count = message_count + $2, last_message_at = $3, participants = $4 WHERE seq = $1`

// hotThread is a thread that messages of a batch join or begin.
type hotThread struct {
	Seq          int64          `db:"seq"`
	InboxSeq     int64          `db:"inbox_seq"`
	ID           string         `db:"id"`
	Subject      string         `db:"subject"`
	SubjectHash  int64          `db:"subject_hash"`
	Participants JSON[[]string] `db:"participants"`
	isNew        bool
	joined       int // messages of this batch
}

const hotThreadColumns = `t.seq, t.inbox_seq, t.id, t.subject, t.subject_hash, t.participants`

// threadIndex finds threads for the messages of a batch.
type threadIndex struct {
	byHeader  map[headerKey]*hotThread
	bySubject map[subjectKey][]*hotThread
	bySeq     map[int64]*hotThread
}

type headerKey struct {
	inbox  int64
	header string
}

type subjectKey struct {
	inbox, hash int64
}

// joinThreads gives each message its thread: the one that is set, else that of
// the newest message it refers to, else, for mail that refers to nothing, one
// with the same subject and a shared participant, else a new one. Threads never
// span inboxes.
func (b *hotBatch) joinThreads(ctx context.Context) error {
	ix := &threadIndex{map[headerKey]*hotThread{}, map[subjectKey][]*hotThread{}, map[int64]*hotThread{}}
	if err := b.readThreads(ctx, ix); err != nil {
		return err
	}
	var all []*hotThread
	for _, m := range b.messages {
		t := ix.find(m)
		if t == nil {
			t = &hotThread{
				InboxSeq: m.InboxSeq, ID: NewID("thr_", b.now.Time), Subject: m.Subject,
				SubjectHash: hash64(m.ThreadSubject), isNew: true,
			}
			ix.add(t)
		}
		if t.joined == 0 {
			all = append(all, t)
		}
		t.join(m)
		m.thread = t
		if m.HeaderID != "" {
			ix.byHeader[headerKey{m.InboxSeq, m.HeaderID}] = t
		}
	}
	if err := b.writeThreads(ctx, all); err != nil {
		return err
	}
	for _, m := range b.messages {
		m.ThreadSeq, m.ThreadID = m.thread.Seq, m.thread.ID
	}
	return nil
}

// earlier returns the Message-IDs that m refers to, the likeliest first.
func earlier(m *NewMessage) []string {
	ids := slices.Clone(m.Refs.V.InReplyTo)
	refs := slices.Clone(m.Refs.V.References)
	slices.Reverse(refs)
	ids = append(ids, refs...)
	return ids[:min(len(ids), maxReferences)]
}

// bySubject says whether m may join a thread by its subject alone.
func bySubject(m *NewMessage) bool {
	return !m.NewThread && !m.Automated && m.ThreadSubject != "" &&
		len(m.Refs.V.InReplyTo) == 0 && len(m.Refs.V.References) == 0
}

// readThreads fills ix with every thread that the batch may join.
func (b *hotBatch) readThreads(ctx context.Context, ix *threadIndex) error {
	var hashes, subjects, inboxes, seqs []int64
	for _, m := range b.messages {
		switch {
		case m.JoinThread != 0 && !m.NewThread:
			seqs = append(seqs, m.JoinThread)
		case m.NewThread:
			continue
		case bySubject(m):
			subjects = append(subjects, hash64(m.ThreadSubject))
		default:
			for _, id := range earlier(m) {
				hashes = append(hashes, hash64(id))
			}
		}
		inboxes = append(inboxes, m.InboxSeq)
	}
	if err := b.readByHeader(ctx, ix, hashes, inboxes); err != nil {
		return err
	}
	return b.readBySubject(ctx, ix, subjects, inboxes, seqs)
}

func (b *hotBatch) readByHeader(ctx context.Context, ix *threadIndex, hashes, inboxes []int64) error {
	if len(hashes) == 0 {
		return nil
	}
	q, args, err := sqlx.In(`SELECT `+hotThreadColumns+`, m.header_id
		FROM messages m JOIN threads t ON t.seq = m.thread_seq
		WHERE m.header_hash IN (?) AND m.inbox_seq IN (?)`, hashes, inboxes)
	if err != nil {
		return fmt.Errorf("threads by reference: %w", err)
	}
	var rows []struct {
		hotThread
		HeaderID string `db:"header_id"`
	}
	if err := b.tx.SelectContext(ctx, &rows, b.tx.Rebind(q), args...); err != nil {
		return fmt.Errorf("threads by reference: %w", err)
	}
	for i := range rows {
		t := ix.add(&rows[i].hotThread)
		ix.byHeader[headerKey{t.InboxSeq, rows[i].HeaderID}] = t
	}
	return nil
}

func (b *hotBatch) readBySubject(ctx context.Context, ix *threadIndex, subjects, inboxes, seqs []int64) error {
	const (
		bySubject = `SELECT ` + hotThreadColumns + ` FROM threads t
			WHERE t.inbox_seq IN (?) AND t.subject_hash IN (?) AND t.last_message_at >= ? ORDER BY t.last_message_at DESC LIMIT 1000`
		bySeq = `SELECT ` + hotThreadColumns + ` FROM threads t WHERE t.seq IN (?)`
	)
	var rows []hotThread
	if len(subjects) > 0 {
		if err := b.selectIn(ctx, &rows, bySubject, inboxes, subjects, NewTime(b.now.Add(-subjectWindow))); err != nil {
			return fmt.Errorf("threads by subject: %w", err)
		}
	}
	if len(seqs) > 0 {
		var set []hotThread
		if err := b.selectIn(ctx, &set, bySeq, seqs); err != nil {
			return fmt.Errorf("threads: %w", err)
		}
		rows = append(rows, set...)
	}
	for i := range rows {
		ix.add(&rows[i])
	}
	return nil
}

func (b *hotBatch) selectIn(ctx context.Context, dest any, query string, args ...any) error {
	q, args, err := sqlx.In(query, args...)
	if err != nil {
		return err
	}
	return b.tx.SelectContext(ctx, dest, b.tx.Rebind(q), args...)
}

// add puts t into the index, or returns the one that is there already.
func (ix *threadIndex) add(t *hotThread) *hotThread {
	if !t.isNew {
		if known := ix.bySeq[t.Seq]; known != nil {
			return known
		}
		ix.bySeq[t.Seq] = t
	}
	k := subjectKey{t.InboxSeq, t.SubjectHash}
	ix.bySubject[k] = append(ix.bySubject[k], t)
	return t
}

func (ix *threadIndex) find(m *NewMessage) *hotThread {
	if m.NewThread {
		return nil
	}
	if m.JoinThread != 0 {
		return ix.bySeq[m.JoinThread]
	}
	for _, id := range earlier(m) {
		if t := ix.byHeader[headerKey{m.InboxSeq, id}]; t != nil {
			return t
		}
	}
	if !bySubject(m) {
		return nil
	}
	own := m.inbox.Address
	for _, t := range ix.bySubject[subjectKey{m.InboxSeq, hash64(m.ThreadSubject)}] {
		shared := func(p string) bool { return p != own && slices.Contains(t.Participants.V, p) }
		if slices.ContainsFunc(participants(m), shared) {
			return t
		}
	}
	return nil
}

// participants are the addresses in m's header, Bcc left out, lower case.
func participants(m *NewMessage) []string {
	a := m.Addresses.V
	var ps []string
	if a.From != nil {
		ps = append(ps, strings.ToLower(a.From.Email))
	}
	for _, list := range [][]Address{a.To, a.Cc} {
		for _, addr := range list[:min(len(list), maxParticipants)] {
			ps = append(ps, strings.ToLower(addr.Email))
		}
	}
	return ps
}

func (t *hotThread) join(m *NewMessage) {
	t.joined++
	for _, p := range participants(m) {
		if len(t.Participants.V) < maxParticipants && !slices.Contains(t.Participants.V, p) {
			t.Participants.V = append(t.Participants.V, p)
		}
	}
}

// writeThreads inserts the new threads, which get their numbers here, and
// updates the others.
func (b *hotBatch) writeThreads(ctx context.Context, all []*hotThread) error {
	isNew := func(t *hotThread) bool { return t.isNew }
	fresh := slices.DeleteFunc(slices.Clone(all), func(t *hotThread) bool { return !t.isNew })
	var rows []any
	if len(fresh) > 0 {
		seqs, err := b.store.dialect.nextSeqs(ctx, b.tx, "threads", len(fresh))
		if err != nil {
			return err
		}
		for i, t := range fresh {
			t.Seq = seqs[i]
			rows = append(rows, t.Seq, b.accountOf(t), t.InboxSeq, t.ID, t.Subject, t.SubjectHash, t.Participants, t.joined, b.now, b.now)
		}
		if err := insertThreads.exec(ctx, b.tx, b.store.stmts, rows); err != nil {
			return fmt.Errorf("insert threads: %w", err)
		}
	}
	for _, t := range slices.DeleteFunc(all, isNew) {
		_, err := b.tx.StmtContext(ctx, b.store.stmts.get(updateThread)).ExecContext(ctx, t.Seq, t.joined, b.now, t.Participants)
		if err != nil {
			return fmt.Errorf("update thread: %w", err)
		}
	}
	return nil
}

func (b *hotBatch) accountOf(t *hotThread) int64 {
	for _, m := range b.messages {
		if m.InboxSeq == t.InboxSeq {
			return m.AccountID
		}
	}
	return 0
}
