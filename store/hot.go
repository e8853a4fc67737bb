package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

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
	// probe says that one of the inboxes was held by another transaction a while
	// ago.
	probe bool
	// refused is set when they must not be sent: then they are left out
	// of the transaction.
	refused *error
}

// itemAtFault says whether one item of a batch may be why the batch failed.
func itemAtFault(err error) bool {
	if errors.Is(err, errLocked) || errors.Is(err, errStaleBlob) {
		return true
	}
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull)
}

// do hands w to the committer. Everything about one inbox, and everything about
// one recipient, goes through the same one, in order.
func (s *Store) do(ctx context.Context, shard int64, w hotWrite) error {
	var refused, err error
	w.refused = &refused
	if w.probe, err = s.held.check(w.inboxes(), time.Now()); err != nil {
		return err
	}
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
	st, d := s.stmts, s.engine
	s.hot = hotStatements{
		threads: st.addBulk(ctx, d, "threads",
			"seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at"),
		references: st.addUpsert(ctx, d, "thread_references", "inbox_seq, header_hash, header_id, thread_seq", " ON CONFLICT DO NOTHING"),
		messages: st.addBulk(ctx, d, "messages",
			"seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold, "+
				"header_id, header_hash, refs, automated, has_code, has_link, truncated, tag, size, created_at"),
		contents: st.addBulk(ctx, d, "contents",
			"message_seq, raw, blob_key, body, snippet, extracted, auth, attachments"),
		recipients: st.addBulk(ctx, d, "recipients",
			"account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at"),
		searchTail: st.addBulk(ctx, d, "search_tail", "message_seq, account_id"),
		emails: st.addBulk(ctx, d, "emails",
			"message_seq, account_id, from_inbox, batch_id, category, tags, metadata, scheduled_at, due_at, created_by"),
		emailTags: st.addBulk(ctx, d, "email_tags", "account_id, name, value, message_seq"),
		events: st.addBulk(ctx, d, "events",
			"account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at"),
		suppressions: st.addUpsert(ctx, d, "suppressions", suppressionWritten, widen),
		deliveries: st.addBulk(ctx, d, "webhook_deliveries",
			"account_id, endpoint_seq, message_seq, id, event_id, event_type, status, attempts, next_attempt_at, created_at, updated_at"),
		counts: st.addUpsert(ctx, d, "daily_counts", "account_id, inbox_seq, day, kind, shard, n",
			" ON CONFLICT (account_id, inbox_seq, day, kind, shard) DO UPDATE SET n = daily_counts.n + excluded.n"),

		lockInboxes:    st.addList(ctx, d, 1, lockInboxes+d.LockRow()),
		newest:         st.addList(ctx, d, 1, newestOfInboxes),
		bySeq:          st.addList(ctx, d, 1, threadsBySeq),
		byHeader:       st.addList(ctx, d, 2, threadsByHeader(d)),
		byExpected:     st.addList(ctx, d, 2, threadsByExpected(d)),
		bySubject:      st.addList(ctx, d, 2, threadsBySubject(d)),
		recentSends:    st.addList(ctx, d, 1, recentSends),
		lockMessages:   st.addList(ctx, d, 1, lockMessages+d.LockRow()),
		lockRecipients: st.addList(ctx, d, 1, lockRecipients+d.LockRow()),
		statuses:       st.addList(ctx, d, 1, recipientStatuses),
		webhooksOf:     st.addList(ctx, d, 1, webhooksOf),
		accounts:       st.addList(ctx, d, 1, senders),
		lockAccounts:   st.addList(ctx, d, 1, senders+d.LockRow()),

		updateRecipients: st.addUpdate(ctx, d, updateRecipients, "bigint", "bigint", "text", "bigint", "bigint", "text", "bigint", "bigint", "bigint"),
		keepSignatures:   st.addUpdate(ctx, d, keepSignatures, "bigint", "text"),
		moveMessages:     st.addUpdate(ctx, d, moveMessages, "bigint", "text", "bigint", "bigint", "bigint"),
		updateDeliveries: st.addUpdate(ctx, d, updateDeliveries, "bigint", "bigint", "text", "bigint", "bigint", "text", "text", "bigint", "bigint"),

		reserve:        st.add(ctx, d.Reserve()),
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
func (s *Store) commitHot(ctx context.Context, shard int64, batch []hotWrite, again bool) error {
	var b hotBatch
	err := s.inTx(ctx, "write", func(tx *sqlx.Tx) error {
		if short := s.engine.ShortLocks(); again && short != "" {
			if _, err := tx.ExecContext(ctx, short); err != nil {
				return err
			}
		}
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
	if len(batch) == 1 {
		s.noteHeld(&batch[0], err)
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

// noteHeld notes whether another transaction holds the inboxes of a write that
// failed on a lock, or passed, alone.
func (s *Store) noteHeld(w *hotWrite, err error) {
	switch inboxes := w.inboxes(); {
	case errors.Is(err, errLocked):
		s.held.note(inboxes, time.Now())
	case w.probe && err == nil:
		s.held.free(inboxes)
	}
}

// hotBatch is one transaction of hot writes. On PostgreSQL it holds rows in
// this order, so that two of them never wait for each other in a ring: the
// messages of the attempts, their recipients, the inboxes, the accounts, the
// counts, cached responses, drafts; each kind by its key.
type hotBatch struct {
	store    *Store
	batch    []hotWrite
	tx       *sqlx.Tx
	shard    int64 // of the counts
	now      Time
	messages []*hotMessage // of inboxes
	emails   []*hotEmail
	inboxes  map[int64]*hotInbox
	threads  []int64 // sequence numbers for new ones
	txName   string  // to engine.Committed
	complete bool    // all is written but the commit
	events   []any   // rows
	told     []told  // the same, for webhook endpoints
	counts   map[countKey]int64
	tries    map[RecipientStatus]int64
	paused   []pause // accounts that stop sending
	topics   map[topic]struct{}
}

func (b *hotBatch) write(ctx context.Context, batch []hotWrite) error {
	b.batch = batch
	var attempts []*Attempt
	var reports []*Report
	for i := range batch {
		b.messages = append(b.messages, batch[i].messages...)
		b.emails = append(b.emails, batch[i].emails...)
		attempts = append(attempts, batch[i].attempts...)
		reports = append(reports, batch[i].reports...)
	}
	for i := range batch {
		if err := checkBlobs(b.now.Time, batch[i].blobs()...); err != nil {
			return errItem(i, err)
		}
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
	if err := b.finish(ctx, batch); err != nil {
		return err
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

// itemOf makes err the error of the write that is meant.
func (b *hotBatch) itemOf(err error, is func(*hotWrite) bool) error {
	for i := range b.batch {
		if err != nil && is(&b.batch[i]) {
			return errItem(i, err)
		}
	}
	return err
}

// ofMessage makes err the error of the write that h is part of.
func (b *hotBatch) ofMessage(h *hotMessage, err error) error {
	return b.itemOf(err, func(w *hotWrite) bool {
		return slices.Contains(w.messages, h) ||
			slices.ContainsFunc(w.emails, func(e *hotEmail) bool { return e.hotMessage == h })
	})
}

// finish writes what follows from the messages: the cached responses in the
// order of their keys, then the approved drafts in the order of their numbers.
// Two batches that write the same ones do so in the same order, and neither
// waits for the other in a circle.
func (b *hotBatch) finish(ctx context.Context, batch []hotWrite) error {
	var answers, approvals []int
	for i := range batch {
		w := &batch[i]
		if *w.refused != nil {
			continue
		}
		if w.once != nil {
			answers = append(answers, i)
		}
		if w.approval != nil {
			approvals = append(approvals, i)
		}
	}
	slices.SortStableFunc(answers, func(i, j int) int { return batch[i].once.compare(batch[j].once) })
	slices.SortStableFunc(approvals, func(i, j int) int { return cmp.Compare(batch[i].approval.DraftSeq, batch[j].approval.DraftSeq) })
	for _, i := range answers {
		id, row := batch[i].stored()
		if err := b.store.saveAnswer(ctx, b.tx, batch[i].once, id, row); err != nil {
			return itemState(i, err)
		}
		crashpoint.Reach(crashpoint.Accept)
	}
	for _, i := range approvals {
		if err := b.approve(ctx, batch[i].approval, &batch[i].messages[0].msg); err != nil {
			return itemState(i, err)
		}
	}
	return nil
}

// itemState says of err, when it is about the state of what item i changes,
// that it is this item's alone.
func itemState(i int, err error) error {
	if errors.Is(err, ErrIdempotencyRaced) || errors.Is(err, ErrState) {
		return errItem(i, err)
	}
	return err
}

// blobs are the keys of the blobs that the messages name.
func (w *hotWrite) blobs() (keys []*string) {
	for _, h := range w.messages {
		keys = append(keys, h.msg.Content.BlobKey)
	}
	for _, h := range w.emails {
		keys = append(keys, h.msg.Content.BlobKey)
	}
	return keys
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
	b.told = append(b.told, told{m.AccountID, m.InboxSeq, m.Seq, id, typ})
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
