package store

import (
	"context"
	"fmt"
	"slices"
)

// ThreadMessages is how many messages of a thread Thread returns at most, the
// latest.
const ThreadMessages = 100

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

	// Latest is the latest message. Its content has the snippet and the verdicts
	// alone, and is nil when it is deleted.
	Latest Message `db:"-"`
}

const (
	// A thread without a message is one whose last was deleted just now.
	listedThreads = `SELECT * FROM (
		SELECT t.seq, i.id AS inbox_id, t.id, t.subject, t.participants, t.message_count, t.last_message_at, t.created_at,
			coalesce((SELECT m.seq FROM messages m WHERE m.thread_seq = t.seq ORDER BY m.created_at DESC, m.seq DESC LIMIT 1), 0) AS latest_seq
		FROM threads t JOIN inboxes i ON i.seq = t.inbox_seq
		WHERE t.inbox_seq = $1`
	andMessages = `) x WHERE latest_seq > 0`
)

// ListThreads returns a page of the inbox's threads, the one with the latest
// message first.
func (s *Store) ListThreads(ctx context.Context, in Inbox, p Page) (List[Thread], error) {
	scope := fmt.Sprintf("threads/%d/%d", in.AccountID, in.Seq)
	before := position{at: maxPosition, seq: maxPosition}
	if p.Cursor != "" {
		var err error
		if before, err = s.cursors.read(scope, p.Cursor); err != nil {
			return List[Thread]{}, err
		}
	}
	q := listedThreads + ` AND (t.last_message_at, t.seq) < ($2, $3)` + andMessages +
		` ORDER BY last_message_at DESC, seq DESC LIMIT $4`
	var rows []Thread
	if err := s.reads.All(ctx, &rows, q, in.Seq, before.at, before.seq, p.Limit+1); err != nil {
		return List[Thread]{}, s.wrap(err, "list threads")
	}
	l := page(s, scope, p.Limit, rows, func(t Thread) position { return position{t.LastMessageAt.UnixMicro(), t.Seq} })
	err := s.fillLatest(ctx, l.Rows)
	l.Rows = slices.DeleteFunc(l.Rows, func(t Thread) bool { return t.Latest.Seq == 0 }) // deleted meanwhile
	return l, err
}

// Thread returns one thread of the inbox, and its messages with their content,
// oldest first: the latest ThreadMessages of them.
func (s *Store) Thread(ctx context.Context, in Inbox, id string) (Thread, []Message, error) {
	q := listedThreads + ` AND t.id = $2` + andMessages
	one := make([]Thread, 1)
	if err := s.reads.One(ctx, &one[0], q, in.Seq, id); err != nil {
		return Thread{}, nil, s.wrap(err, "thread")
	}
	if err := s.fillLatest(ctx, one); err != nil {
		return Thread{}, nil, err
	}
	if one[0].Latest.Seq == 0 {
		return Thread{}, nil, fmt.Errorf("thread: %w", ErrNotFound) // deleted meanwhile
	}
	l, err := s.ListMessages(ctx, MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq, ThreadID: id}, Page{Limit: ThreadMessages})
	slices.Reverse(l.Rows)
	return one[0], l.Rows, err
}

// fillLatest reads the latest messages of the threads.
func (s *Store) fillLatest(ctx context.Context, ts []Thread) error {
	seqs := make([]int64, len(ts))
	for i, t := range ts {
		seqs[i] = t.LatestSeq
	}
	ms, err := s.messagesBySeq(ctx, seqs, nil)
	if err != nil || len(ms) == 0 {
		return err
	}
	var contents []Content
	q := `SELECT message_seq, snippet, auth FROM contents WHERE ` + s.engine.OneOf("message_seq", "$1")
	if err := s.reads.All(ctx, &contents, q, s.engine.List(seqs)); err != nil {
		return s.wrap(err, "read snippets")
	}
	bySeq := make(map[int64]*Message, len(ms))
	for i := range ms {
		bySeq[ms[i].Seq] = &ms[i]
	}
	for i, c := range contents {
		if m := bySeq[c.MessageSeq]; m != nil && m.ExpiredAt == nil {
			m.Content = &contents[i]
		}
	}
	for i := range ts {
		if m := bySeq[ts[i].LatestSeq]; m != nil {
			ts[i].Latest = *m
		}
	}
	return nil
}
