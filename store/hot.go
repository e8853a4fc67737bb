package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// hotWrite is one of the changes that share transactions: messages that arrive
// or are accepted for sending, and what came of an attempt to deliver.
type hotWrite struct {
	messages []*NewMessage
	attempt  *Attempt
	once     *Once
}

// NewMessage is a message to be stored. The store gives it its id, its time and
// its thread.
type NewMessage struct {
	// Message holds AccountID, InboxSeq, Direction, Status, TestMode, FromEmail,
	// Addresses, Subject, HeaderID, Refs, Automated, HasCode, HasLink, Tag,
	// Size, Content and, for outbound ones, Recipients (Email, Domain, Kind).
	// Everything else is filled in when the message is stored.
	Message
	// SubjectFold is the subject folded for comparison.
	SubjectFold string
	// ThreadSubject is the subject without reply marks, folded; mail with the
	// same one may be of the same thread.
	ThreadSubject string
	// JoinThread is the sequence number of the thread to join, or 0.
	JoinThread int64
	// NewThread says that the message never joins a thread.
	NewThread bool

	inbox  hotInbox
	thread *hotThread
}

// itemAtFault says whether one item of a batch may be why the batch failed.
func itemAtFault(err error) bool {
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull) && !errors.Is(err, context.DeadlineExceeded)
}

// do hands w to the committer. Everything about one inbox, and everything about
// one recipient, goes through the same one, in order.
func (s *Store) do(ctx context.Context, shard int64, w hotWrite) error {
	return s.commits[uint64(shard)%uint64(len(s.commits))].do(ctx, w) //nolint:gosec // sequence numbers are positive
}

var (
	insertThreads = newBulkInsert("threads",
		"seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at")
	insertMessages = newBulkInsert("messages",
		"seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold, "+
			"header_id, header_hash, refs, automated, has_code, has_link, tag, size, created_at")
	insertContents = newBulkInsert("contents",
		"message_seq, raw, blob_key, body, snippet, extracted, auth, attachments")
	insertRecipients = newBulkInsert("recipients",
		"account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at")
	insertEvents = newBulkInsert("events",
		"account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at")
)

// prepareHot prepares the statements of the hot writes while no transaction is
// open.
func (s *Store) prepareHot(ctx context.Context) error {
	for _, b := range []*bulkInsert{&insertThreads, &insertMessages, &insertContents, &insertRecipients, &insertEvents} {
		if err := b.prepare(ctx, s.stmts); err != nil {
			return s.wrap(err, "prepare")
		}
	}
	for _, q := range []string{updateThread, updateAttempt, keepSignature} {
		if err := s.stmts.prepare(ctx, q); err != nil {
			return s.wrap(err, "prepare")
		}
	}
	return nil
}

// commitHot writes the batch in one transaction, all of it or nothing, and
// wakes those who wait for it.
func (s *Store) commitHot(ctx context.Context, batch []hotWrite) error {
	var b hotBatch
	err := s.inTx(ctx, "write", func(tx *sqlx.Tx) error {
		b = hotBatch{store: s, tx: tx, now: NewTime(s.now()), topics: map[topic]struct{}{}}
		return b.write(ctx, batch)
	})
	if err != nil {
		return err
	}
	topics := make([]topic, 0, len(b.topics))
	for t := range b.topics {
		topics = append(topics, t)
	}
	s.changed(topics)
	return nil
}

// hotBatch is one transaction of hot writes.
type hotBatch struct {
	store    *Store
	tx       *sqlx.Tx
	now      Time
	messages []*NewMessage
	events   []any // rows of insertEvents
	topics   map[topic]struct{}
}

func (b *hotBatch) write(ctx context.Context, batch []hotWrite) error {
	var attempts []*Attempt
	for i := range batch {
		b.messages = append(b.messages, batch[i].messages...)
		if batch[i].attempt != nil {
			attempts = append(attempts, batch[i].attempt)
		}
	}
	if err := b.recordAttempts(ctx, attempts); err != nil {
		return err
	}
	if err := b.addMessages(ctx); err != nil {
		return err
	}
	if len(b.events) > 0 {
		b.topics[topic{kind: topicEvents}] = struct{}{}
		if err := insertEvents.exec(ctx, b.tx, b.store.stmts, b.events); err != nil {
			return fmt.Errorf("insert events: %w", err)
		}
	}
	for i := range batch {
		w := &batch[i]
		if w.once == nil {
			continue
		}
		m := w.messages[0].Message
		if err := b.store.saveAnswer(ctx, b.tx, w.once, m.ID, m); err != nil {
			return err
		}
	}
	return nil
}

// event notes an event about a message.
func (b *hotBatch) event(typ EventType, m *Message, data EventData) {
	b.events = append(b.events, m.AccountID, m.InboxSeq, NewID("evt_", b.now.Time), typ, m.Seq, m.TestMode, JSON[EventData]{data}, b.now)
}

// wake notes whom to wake after the commit.
func (b *hotBatch) wake(t topic) { b.topics[t] = struct{}{} }
