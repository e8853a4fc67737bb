package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/batch"
)

// hotWrite is one of the changes that share transactions: messages that arrive
// or are accepted for sending, and what came of attempts to deliver.
type hotWrite struct {
	messages []*hotMessage
	attempts []*Attempt
	reports  []*Report
	release  int64 // the number of the message in quarantine that messages[0] was
	once     *Once
	// probe says that one of the inboxes was locked by another transaction a while
	// ago.
	probe bool
}

// itemAtFault reports whether one item of a batch may be why the batch failed.
func itemAtFault(err error) bool {
	if errors.Is(err, errLocked) || errors.Is(err, errConflict) || errors.Is(err, errStaleBlob) {
		return true
	}
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull)
}

// do hands w to the committer. Everything about one inbox, and everything about
// one recipient, goes through the same one, in order.
func (s *Store) do(ctx context.Context, shard int64, w hotWrite) error {
	var err error
	if w.probe, err = s.locked.check(w.inboxes(), time.Now()); err != nil {
		return err
	}
	if err := s.commits[uint64(shard)%uint64(len(s.commits))].Do(ctx, w); err != nil { //nolint:gosec // sequence numbers are positive
		return err
	}
	if w.once != nil {
		crashpoint.Reach(crashpoint.Queue)
	}
	return nil
}

// weight is how many writes it stands for.
func (w hotWrite) weight() int { return max(1, len(w.messages)) }

// hotStatements are the statements of the hot writes.
type hotStatements struct {
	threads, references, messages, contents, recipients, events, deliveries, sends, suppressions, responses batch.Insert

	lockInboxes, newest, bySeq, byHeader, byExpected, expectIn, bySubject, lockMessages, lockRecipients, statuses, webhooksOf batch.Rows

	updateRecipients, keepSignatures, moveMessages, updateDeliveries batch.Rows

	ahead, version, reserve, updateThread, reported, updateReported, relayedAs, openEmail, watched, pause, cacheResponse *sql.Stmt
}

// prepareHot prepares the statements of the hot writes.
func (s *Store) prepareHot(ctx context.Context) error {
	st, d := s.stmts, s.engine
	s.hot = hotStatements{
		threads: st.Insert(ctx, "threads",
			"seq, account_id, inbox_seq, id, subject, subject_hash, participants, message_count, last_message_at, created_at", ""),
		references: st.Insert(ctx, "thread_references", "inbox_seq, header_hash, header_id, thread_seq", " ON CONFLICT DO NOTHING"),
		messages: st.Insert(ctx, "messages",
			"seq, account_id, inbox_seq, thread_seq, id, direction, status, test_mode, from_email, addresses, subject, subject_fold, "+
				"header_id, header_hash, refs, automated, has_code, has_link, truncated, tag, size, created_at, sent_by, quarantined, "+
				"delivered_to", ""),
		contents: st.Insert(ctx, "contents",
			"message_seq, raw, blob_key, body, snippet, extracted, auth, attachments, checksum", ""),
		recipients: st.Insert(ctx, "recipients",
			"account_id, message_seq, email, domain, kind, status, attempts, fence, next_attempt_at, created_at", ""),
		events: st.Insert(ctx, "events",
			"account_id, inbox_seq, id, type, message_seq, test_mode, data, created_at", ""),
		suppressions: st.Insert(ctx, "suppressions", suppressionWritten, widen),
		responses:    responses(ctx, st),
		deliveries: st.Insert(ctx, "webhook_deliveries",
			"account_id, endpoint_seq, message_seq, id, event_id, event_type, status, attempts, next_attempt_at, created_at, updated_at", ""),
		sends: st.Insert(ctx, "send_counts", "account_id, day, kind, shard, n",
			" ON CONFLICT (account_id, day, kind, shard) DO UPDATE SET n = send_counts.n + excluded.n"),

		lockInboxes:    st.Lookup(ctx, 1, lockInboxes+d.LockRow()),
		newest:         st.Lookup(ctx, 1, newestOfInboxes),
		bySeq:          st.Lookup(ctx, 1, threadsBySeq),
		byHeader:       st.Lookup(ctx, 2, threadsByHeader(d)),
		byExpected:     st.Lookup(ctx, 2, threadsByExpected(d)),
		expectIn:       st.Lookup(ctx, 1, expectIn),
		bySubject:      st.Lookup(ctx, 2, threadsBySubject(d)),
		lockMessages:   st.Lookup(ctx, 1, lockMessages+d.LockRow()),
		lockRecipients: st.Lookup(ctx, 1, lockRecipients+d.LockRow()),
		statuses:       st.Lookup(ctx, 1, recipientStatuses),
		webhooksOf:     st.Lookup(ctx, 1, webhooksOf),

		updateRecipients: st.Update(ctx, updateRecipients, "bigint", "bigint", "text", "bigint", "bigint", "text", "bigint", "bigint", "bigint"),
		keepSignatures:   st.Update(ctx, keepSignatures, "bigint", "text"),
		moveMessages:     st.Update(ctx, moveMessages, "bigint", "text", "bigint", "bigint", "bigint"),
		updateDeliveries: st.Update(ctx, updateDeliveries, "bigint", "bigint", "text", "bigint", "bigint", "text", "text", "bigint", "bigint"),

		version:        st.Add(ctx, d.Version()),
		reserve:        st.Add(ctx, d.Reserve()),
		updateThread:   st.Add(ctx, updateThread),
		reported:       st.Add(ctx, reportedRecipient),
		updateReported: st.Add(ctx, updateReported),
		relayedAs:      st.Add(ctx, relayedAs),
		openEmail:      st.Add(ctx, openEmail),
		watched:        st.Add(ctx, watchedSince),
		pause:          st.Add(ctx, pauseSender),
		cacheResponse:  st.Add(ctx, insertResponse),
	}
	if q := d.Ahead(); q != "" {
		s.hot.ahead = st.Add(ctx, q)
	}
	return s.wrap(st.Err, "open")
}

// commitHot writes all of the writes, or nothing, in one transaction and wakes the
// waiters. refused has an error for each write that was left out because it must
// not be sent.
func (s *Store) commitHot(ctx context.Context, shard int64, writes []hotWrite, again bool) (refused []error, err error) {
	if err := s.stmts.Prepare(ctx); err != nil { // then they go on unprepared
		s.log.DebugContext(ctx, "a statement of the writer was not prepared", "error", err)
	}
	var b hotBatch
	err = s.inTxKeepCache(ctx, "write", func(tx *sqlx.Tx) error {
		if short := s.engine.ShortLocks(); again && short != "" {
			if _, err := tx.ExecContext(ctx, short); err != nil {
				return err
			}
		}
		b = hotBatch{
			store: s, tx: tx, rows: batch.NewWriter(tx), shard: shard, now: NewTime(s.now()), topics: map[topic][]arrival{},
			counts: map[countKey]int64{}, tries: map[RecipientStatus]int64{},
		}
		// The transaction's own watch over ctx is enough: another for each
		// statement would cost a goroutine each.
		err := b.checkKnown(context.WithoutCancel(ctx))
		if err == nil {
			err = b.write(context.WithoutCancel(ctx), writes)
		}
		b.complete = err == nil
		return err
	})
	if err != nil && s.engine.Alone() {
		s.known.failed.Store(true)
	}
	if err != nil && ctx.Err() != nil { // batch.Timeout has passed
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(writes) == 1 {
		s.noteLocked(&writes[0], err)
	}
	if err != nil && (!b.complete || !s.wasCommitted(ctx, b.txName, err, outcomeTimeout, len(b.messages), b.isStored)) {
		return nil, err
	}
	s.stored.Add(int64(len(b.messages)))
	s.wake.wakeWith(b.topics)
	s.engine.Wrote(len(writes) + b.large)
	s.totals.add(&b)
	b.logPauses(ctx)
	return b.refused, nil
}

// knownRows are rows that one hot write read and the next ones need. They are kept
// only where one process writes, with one connection: whoever has that connection
// may use them. Any other transaction of this process forgets them, and so do a
// hot write that failed and a change by another process.
type knownRows struct {
	inboxes  map[int64]hotInbox
	webhooks map[int64][]Webhook // active ones, by account
	expected map[int64]bool      // whether threads of the inbox expect mail

	numbered        bool
	message, thread int64 // the last numbers

	version int64       // of the database, as others changed it
	failed  atomic.Bool // a hot write has
}

// maxKnown is the most rows of a kind that are kept.
const maxKnown = 10000

// note keeps a row of a kind.
func note[T any](rows *map[int64]T, key int64, row T) {
	if *rows == nil || len(*rows) >= maxKnown {
		*rows = map[int64]T{}
	}
	(*rows)[key] = row
}

func (k *knownRows) forget() {
	k.inboxes, k.webhooks, k.expected, k.numbered = nil, nil, nil, false
}

// checkKnown forgets the rows that may have changed.
func (b *hotBatch) checkKnown(ctx context.Context) error {
	if !b.store.engine.Alone() {
		return nil
	}
	k := &b.store.known
	was := k.version
	err := b.tx.StmtContext(ctx, b.store.hot.version).QueryRowContext(ctx).Scan(&k.version)
	if err != nil || k.version != was || k.failed.Swap(false) {
		k.forget()
	}
	return errIn("version of the database", err)
}

// noteLocked notes whether another transaction holds the inboxes of a write that
// failed on a lock, or passed, alone.
func (s *Store) noteLocked(w *hotWrite, err error) {
	switch inboxes := w.inboxes(); {
	case errors.Is(err, errLocked):
		s.locked.note(inboxes, time.Now())
	case w.probe && err == nil:
		s.locked.free(inboxes)
	}
}

// hotBatch is one transaction of hot writes. On PostgreSQL it holds rows in
// this order, so that two of them never wait for each other in a ring: the
// messages of the attempts, their recipients, the inboxes, the accounts, the
// counts, cached responses, drafts; each kind by its key.
type hotBatch struct {
	store    *Store
	writes   []hotWrite
	refused  []error // for each of writes: why it is left out, or nil
	tx       *sqlx.Tx
	rows     *batch.Writer
	ahead    *ahead // nil: it was not read
	shard    int64  // of the counts of sends
	now      Time
	messages []*hotMessage // of inboxes
	large    int           // by how many writes the raw messages count more
	inboxes  map[int64]*hotInbox
	threads  []int64            // sequence numbers for new ones
	txName   string             // to engine.Committed
	complete bool               // all is written but the commit
	events   []any              // rows
	notices  []notice           // the same, for webhook endpoints
	received int64              // messages outside of test mode
	counts   map[countKey]int64 // of sends
	tries    map[RecipientStatus]int64
	lists    map[listKey]*mail.List
	// listEntries are those that lists are made of.
	listEntries map[listKey][]ListEntry
	paused      []pause             // accounts that stop sending
	topics      map[topic][]arrival // see hub.wakeWith
}

func (b *hotBatch) write(ctx context.Context, writes []hotWrite) error {
	b.writes, b.refused = writes, make([]error, len(writes))
	var attempts []*Attempt
	var reports []*Report
	for i := range writes {
		b.messages = append(b.messages, writes[i].messages...)
		attempts = append(attempts, writes[i].attempts...)
		reports = append(reports, writes[i].reports...)
	}
	for i := range writes {
		if err := checkBlobs(b.now.Time, writes[i].blobs()...); err != nil {
			return batch.OfItem(i, err)
		}
	}
	if err := b.recordAttempts(ctx, attempts, reports); err != nil {
		return err
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Mark)
	}
	if err := b.addMessages(ctx); err != nil {
		return err
	}
	if err := b.countSends(ctx); err != nil {
		return err
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	if len(b.events) == 0 {
		return errIn("insert rows", b.rows.Flush(ctx))
	}
	b.wake(topic{kind: topicEvents})
	if err := b.rows.Insert(ctx, &b.store.hot.events, b.events); err != nil {
		return errIn("insert events", err)
	}
	deliveries, err := b.store.deliveriesOf(ctx, b.tx, b.notices, b.ahead, b.now)
	if err != nil {
		return err
	}
	if len(deliveries) > 0 {
		b.wake(topic{kind: topicWebhooks})
	}
	if err := b.rows.Insert(ctx, &b.store.hot.deliveries, deliveries); err != nil {
		return errIn("insert deliveries", err)
	}
	if err := b.rows.Flush(ctx); err != nil {
		return errIn("insert rows", err)
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Event)
	}
	return nil
}

// itemOf makes err the error of the write that is meant.
func (b *hotBatch) itemOf(err error, is func(*hotWrite) bool) error {
	for i := range b.writes {
		if err != nil && is(&b.writes[i]) {
			return batch.OfItem(i, err)
		}
	}
	return err
}

// ofMessage makes err the error of the write that h is part of.
func (b *hotBatch) ofMessage(h *hotMessage, err error) error {
	return b.itemOf(err, func(w *hotWrite) bool {
		return slices.Contains(w.messages, h)
	})
}

// finish writes what follows from the messages: the cached responses in the
// order of their keys, then the approved drafts in the order of their numbers.
// Two batches that write the same ones do so in the same order, and neither
// waits for the other in a circle.
func (b *hotBatch) finish(ctx context.Context) error {
	var responses []int
	for i := range b.writes {
		w := &b.writes[i]
		if b.refused[i] != nil {
			continue
		}
		if w.once != nil {
			responses = append(responses, i)
		}
	}
	if len(responses) > 0 {
		if err := b.rows.Flush(ctx); err != nil {
			return errIn("insert rows", err)
		}
	}
	slices.SortStableFunc(responses, func(i, j int) int { return b.writes[i].once.compare(b.writes[j].once) })
	if err := b.cacheResponses(ctx, responses); err != nil {
		return err
	}
	return nil
}

// itemState says of err, when it is about the state of what item i changes,
// that it is this item's alone.
func itemState(i int, err error) error {
	if errors.Is(err, ErrIdempotencyRaced) || errors.Is(err, ErrState) {
		return batch.OfItem(i, err)
	}
	return err
}

// blobs are the keys of the blobs that the messages name.
func (w *hotWrite) blobs() (keys []*string) {
	for _, h := range w.messages {
		if w.release == 0 { // else the message in quarantine keeps the blob
			keys = append(keys, h.msg.Content.BlobKey)
		}
	}
	return keys
}

// stored is the row that the response shows, with its id.
func (w *hotWrite) stored() (id string, row any) {
	return w.messages[0].msg.ID, w.messages[0].msg
}

// event notes an event about a message.
func (b *hotBatch) event(id string, typ EventType, m *Message, data any) {
	if typ == EventMessageReceived && !m.TestMode {
		b.received++
	}
	b.notices = append(b.notices, notice{m.AccountID, m.InboxSeq, m.Seq, id, typ})
	var inbox any
	if m.InboxSeq != 0 {
		inbox = m.InboxSeq
	}
	b.events = append(b.events, m.AccountID, inbox, id, string(typ), m.Seq, m.TestMode, data, b.now.UnixMicro())
}

// wake notes whom to wake after the commit.
func (b *hotBatch) wake(t topic) {
	if _, noted := b.topics[t]; !noted {
		b.topics[t] = nil
	}
}

func errIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// wasCommitted reports whether the transaction tx was committed although its commit
// returned err: the connection may have broken after the commit, and a caller that
// learns "not written" would repeat the work. It asks until timeout, even when ctx
// ends; messages is the number of messages in the transaction. isStored looks for
// something that the transaction wrote: a server that crashed before it wrote the
// transaction to disk gives its name to a later one, which may have been committed.
func (s *Store) wasCommitted(
	ctx context.Context, tx string, err error, timeout time.Duration, messages int, isStored func(context.Context) (bool, error),
) bool {
	if tx == "" || !errors.Is(err, ErrUnavailable) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for {
		known, committed, err := s.engine.Committed(ctx, tx)
		if err == nil && known && committed {
			committed, err = isStored(ctx)
		}
		if err == nil && known {
			return committed
		}
		if !work.Pause(ctx, outcomeEvery, nil) {
			s.log.WarnContext(ctx, "the database went away in a commit: whether it was written is not known",
				"messages", messages)
			return false
		}
	}
}

// isStored reports whether the batch is stored: one of its messages is. A batch of emails
// that all became drafts, or are left out, has none to look for.
func (b *hotBatch) isStored(ctx context.Context) (bool, error) {
	var ids []string
	for _, m := range b.messages {
		ids = append(ids, m.msg.ID)
	}
	if len(ids) == 0 {
		return true, nil
	}
	var found []string
	err := selectIn(ctx, b.store.read, &found, `SELECT id FROM messages WHERE id IN (?)`, ids)
	return len(found) > 0, err
}

// Why a transaction was rolled back. Both come with ErrUnavailable.
var (
	// errLocked means that another transaction holds a row for longer than lock_timeout.
	errLocked = errors.New("another transaction holds the row")
	// errConflict means that each of maxTries attempts conflicted with other transactions.
	errConflict = errors.New("other transactions conflict with this one")
)

// lockedInboxes are inboxes whose row another transaction locks, for example one
// of a node that stopped in the middle. Their messages are refused at once, so
// that they do not delay messages to other inboxes.
type lockedInboxes struct {
	mu    sync.Mutex
	until map[int64]time.Time
}

// check returns an error when one of the inboxes is locked. After lockedInboxTTL it lets
// one write pass: probe says that it may fail.
func (h *lockedInboxes) check(inboxes []int64, now time.Time) (probe bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.until) == 0 {
		return false, nil
	}
	for _, seq := range inboxes {
		until, locked := h.until[seq]
		if locked && now.Before(until) {
			return false, fmt.Errorf("%w: inbox %d: %w", ErrUnavailable, seq, errLocked)
		}
		probe = probe || locked
	}
	for _, seq := range inboxes {
		if probe {
			h.until[seq] = now.Add(lockedInboxTTL)
		}
	}
	return probe, nil
}

// note notes that a write to the inboxes failed on a lock.
func (h *lockedInboxes) note(inboxes []int64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until == nil || len(h.until) >= maxLockedInboxes {
		h.until = map[int64]time.Time{}
	}
	for _, seq := range inboxes {
		h.until[seq] = now.Add(lockedInboxTTL)
	}
}

// free notes that a write to the inboxes passed.
func (h *lockedInboxes) free(inboxes []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, seq := range inboxes {
		delete(h.until, seq)
	}
}

// inboxes are the sequence numbers of the inboxes that w locks.
func (w *hotWrite) inboxes() []int64 {
	var seqs []int64
	for _, m := range w.messages {
		seqs = append(seqs, m.msg.InboxSeq)
	}
	return seqs
}
