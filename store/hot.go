package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// hotWrite is one of the changes that share transactions: messages that arrive
// or are accepted for sending, and what came of attempts to deliver.
type hotWrite struct {
	messages []*hotMessage
	emails   []*hotEmail
	batchID  string // of the emails; empty for one that is sent alone
	attempts []*Attempt
	reports  []*Report
	approval *Approval // of the draft that messages[0] comes from
	once     *Once
	// refused is set when they must not be sent: then they are left out
	// of the transaction.
	refused *error
}

// itemAtFault says whether one item of a batch may be why the batch failed.
func itemAtFault(err error) bool {
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull)
}

// do hands w to the committer. Everything about one inbox, and everything about
// one recipient, goes through the same one, in order.
func (s *Store) do(ctx context.Context, shard int64, w hotWrite) error {
	var refused error
	w.refused = &refused
	if err := s.commits[uint64(shard)%uint64(len(s.commits))].do(ctx, w); err != nil { //nolint:gosec // sequence numbers are positive
		return err
	}
	if w.once != nil {
		crashpoint.Reach(crashpoint.Queue)
	}
	return refused
}

// weight is how many writes it stands for.
func (w hotWrite) weight() int { return max(1, len(w.messages)+len(w.emails)) }

// hotStatements are the statements of the hot writes.
type hotStatements struct {
	threads, references, messages, contents, recipients, searchTail, emails, emailTags, events, deliveries, counts, suppressions bulkInsert

	lockInboxes, accounts, lockAccounts, newest, bySeq, byHeader, byExpected, bySubject, recentSends, lockMessages, lockRecipients, statuses, webhooksOf listQuery

	updateRecipients, keepSignatures, moveMessages, updateDeliveries bulkUpdate

	reserve, updateThread, reported, updateReported, openEmail, accepted, watched, pause, approveDraft *sql.Stmt
}

// prepareHot prepares the statements of the hot writes.
func (s *Store) prepareHot(ctx context.Context) error {
	st, d := s.stmts, s.dialect
	s.hot = hotStatements{
		threads: st.addBulk(ctx, d, "threads",
			"seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at"),
		references: st.addUpsert(ctx, d, "thread_references", "inbox_seq, header_hash, header_id, thread_seq", " ON CONFLICT DO NOTHING"),
		messages: st.addBulk(ctx, d, "messages",
			"seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold, "+
				"header_id, header_hash, refs, automated, has_code, has_link, tag, size, created_at"),
		contents: st.addBulk(ctx, d, "contents",
			"message_seq, raw, blob_key, body, snippet, extracted, auth, attachments"),
		recipients: st.addBulk(ctx, d, "recipients",
			"account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at"),
		searchTail: st.addBulk(ctx, d, "search_tail", "message_seq, account_id"),
		emails: st.addBulk(ctx, d, "emails",
			"message_seq, account_id, from_inbox, batch_id, category, tags, metadata, scheduled_at, due_at"),
		emailTags: st.addBulk(ctx, d, "email_tags", "account_id, name, value, message_seq"),
		events: st.addBulk(ctx, d, "events",
			"account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at"),
		suppressions: st.addUpsert(ctx, d, "suppressions", suppressionWritten, widen),
		deliveries: st.addBulk(ctx, d, "webhook_deliveries",
			"account_id, endpoint_seq, id, event_id, event_type, status, attempts, next_attempt_at, created_at, updated_at"),
		counts: st.addUpsert(ctx, d, "daily_counts", "account_id, inbox_seq, day, kind, shard, n",
			" ON CONFLICT (account_id, inbox_seq, day, kind, shard) DO UPDATE SET n = daily_counts.n + excluded.n"),

		lockInboxes:    st.addList(ctx, d, 1, lockInboxes+d.lockRow()),
		newest:         st.addList(ctx, d, 1, newestOfInboxes),
		bySeq:          st.addList(ctx, d, 1, threadsBySeq),
		byHeader:       st.addList(ctx, d, 2, threadsByHeader(d)),
		byExpected:     st.addList(ctx, d, 2, threadsByExpected(d)),
		bySubject:      st.addList(ctx, d, 2, threadsBySubject(d)),
		recentSends:    st.addList(ctx, d, 1, recentSends),
		lockMessages:   st.addList(ctx, d, 1, lockMessages+d.lockRow()),
		lockRecipients: st.addList(ctx, d, 1, lockRecipients+d.lockRow()),
		statuses:       st.addList(ctx, d, 1, recipientStatuses),
		webhooksOf:     st.addList(ctx, d, 1, webhooksOf),
		accounts:       st.addList(ctx, d, 1, senders),
		lockAccounts:   st.addList(ctx, d, 1, senders+d.lockRow()),

		updateRecipients: st.addUpdate(ctx, d, updateRecipients, "bigint", "bigint", "text", "bigint", "text", "bigint", "bigint", "bigint"),
		keepSignatures:   st.addUpdate(ctx, d, keepSignatures, "bigint", "text"),
		moveMessages:     st.addUpdate(ctx, d, moveMessages, "bigint", "text", "bigint", "bigint"),
		updateDeliveries: st.addUpdate(ctx, d, updateDeliveries, "bigint", "bigint", "text", "bigint", "bigint", "text", "text", "bigint", "bigint"),

		reserve:        st.add(ctx, d.reserve()),
		updateThread:   st.add(ctx, updateThread),
		reported:       st.add(ctx, reportedRecipient),
		updateReported: st.add(ctx, updateReported),
		openEmail:      st.add(ctx, openEmail),
		accepted:       st.add(ctx, acceptedSince),
		watched:        st.add(ctx, watchedSince),
		pause:          st.add(ctx, pauseSender),
		approveDraft:   st.add(ctx, approveDraft),
	}
	return s.wrap(st.err, "open")
}

// commitHot writes the batch in one transaction, all of it or nothing, and
// wakes those who wait for it.
func (s *Store) commitHot(ctx context.Context, shard int64, batch []hotWrite) error {
	var b hotBatch
	err := s.inTx(ctx, "write", func(tx *sqlx.Tx) error {
		b = hotBatch{
			store: s, tx: tx, shard: shard, now: NewTime(s.now()), topics: map[topic]struct{}{},
			counts: map[countKey]int64{}, tries: map[RecipientStatus]int64{},
		}
		// The transaction's own watch over ctx is enough: another for each
		// statement would cost a goroutine each.
		err := b.write(context.WithoutCancel(ctx), batch)
		b.complete = err == nil
		return err
	})
	if err != nil && ctx.Err() != nil { // commitTimeout is over
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil && (!b.complete || !s.committed(ctx, b.txName, err, askFor, len(b.messages)+len(b.emails))) {
		return err
	}
	topics := make([]topic, 0, len(b.topics))
	for t := range b.topics {
		topics = append(topics, t)
	}
	s.stored.Add(int64(len(b.messages) + len(b.emails)))
	s.changed(topics, len(batch))
	s.tally.add(&b)
	b.tellOfPauses(ctx)
	return nil
}

// hotBatch is one transaction of hot writes. On PostgreSQL it holds rows in
// this order, so that two of them never wait for each other in a ring: the
// messages of the attempts, their recipients, the inboxes, the accounts, the
// counts, stored answers, drafts; each kind but the last two by its key.
type hotBatch struct {
	store    *Store
	tx       *sqlx.Tx
	shard    int64 // of the counts
	now      Time
	messages []*hotMessage // of inboxes
	emails   []*hotEmail
	inboxes  map[int64]*hotInbox
	threads  []int64 // sequence numbers for new ones
	txName   string  // to dialect.committed
	complete bool    // all is written but the commit
	events   []any   // rows
	told     []told  // the same, for webhook endpoints
	counts   map[countKey]int64
	tries    map[RecipientStatus]int64
	paused   []pause // accounts that stop sending
	topics   map[topic]struct{}
}

func (b *hotBatch) write(ctx context.Context, batch []hotWrite) error {
	var attempts []*Attempt
	var reports []*Report
	for i := range batch {
		b.messages = append(b.messages, batch[i].messages...)
		b.emails = append(b.emails, batch[i].emails...)
		attempts = append(attempts, batch[i].attempts...)
		reports = append(reports, batch[i].reports...)
	}
	if err := b.recordAttempts(ctx, attempts, reports); err != nil {
		return err
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Mark)
	}
	if err := b.addMessages(ctx, batch); err != nil {
		return err
	}
	if err := b.addCounts(ctx); err != nil {
		return err
	}
	for i := range batch {
		if err := b.finish(ctx, &batch[i]); err != nil {
			return err
		}
	}
	if len(b.events) == 0 {
		return nil
	}
	b.wake(topic{kind: topicEvents})
	if err := b.store.hot.events.exec(ctx, b.tx, b.events); err != nil {
		return errIn("insert events", err)
	}
	n, err := b.store.tellWebhooks(ctx, b.tx, b.told, b.now)
	if n > 0 {
		b.wake(topic{kind: topicWebhooks})
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Event)
	}
	return err
}

// finish writes what follows from the messages of w.
func (b *hotBatch) finish(ctx context.Context, w *hotWrite) error {
	if *w.refused != nil {
		return nil
	}
	if w.once != nil {
		id, row := w.stored()
		if err := b.store.saveAnswer(ctx, b.tx, w.once, id, row); err != nil {
			return err
		}
		crashpoint.Reach(crashpoint.Accept)
	}
	if w.approval != nil {
		return b.approve(ctx, w.approval, &w.messages[0].msg)
	}
	return nil
}

// stored is what the answer to the call tells of, with its id.
func (w *hotWrite) stored() (id string, row any) {
	switch {
	case w.batchID != "":
		return w.batchID, Batch{w.batchID, emailsOf(w.emails)}
	case len(w.emails) > 0:
		e := emailsOf(w.emails)[0]
		return e.ID, e
	}
	return w.messages[0].msg.ID, w.messages[0].msg
}

// event notes an event about a message, and counts it.
func (b *hotBatch) event(id string, typ EventType, m *Message, data any) {
	b.countEvent(typ, m)
	b.told = append(b.told, told{m.AccountID, m.InboxSeq, id, typ})
	var inbox any
	if m.InboxSeq != 0 {
		inbox = m.InboxSeq
	}
	b.events = append(b.events, m.AccountID, inbox, id, string(typ), m.Seq, m.TestMode, data, b.now.UnixMicro())
}

// wake notes whom to wake after the commit.
func (b *hotBatch) wake(t topic) { b.topics[t] = struct{}{} }

func errIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
