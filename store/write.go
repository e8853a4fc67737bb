package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/batch"
)

// hotWrite is messages that are accepted for sending.
type hotWrite struct {
	messages []*hotMessage
	emails   []*hotEmail
	batchID  string    // of the emails; empty for one that is sent alone
	approval *Approval // of the draft that messages[0] comes from
	once     *Once
}

// itemAtFault reports whether one item of a batch may be why the batch failed.
func itemAtFault(err error) bool {
	if errors.Is(err, errLocked) || errors.Is(err, errConflict) || errors.Is(err, errStaleBlob) {
		return true
	}
	return !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrFull)
}

// hotStatements are the statements of the hot writes.
type hotStatements struct {
	accounts, lockAccounts batch.Rows

	accepted, approveDraft, keepLabels, cacheResponse *sql.Stmt
}

// prepareHot prepares the statements of the hot writes.
func (s *Store) prepareHot(ctx context.Context) error {
	st, d := s.stmts, s.engine
	s.hot = hotStatements{
		accounts:     st.Lookup(ctx, 1, senders),
		lockAccounts: st.Lookup(ctx, 1, senders+d.LockRow()),

		accepted:      st.Add(ctx, acceptedSince),
		approveDraft:  st.Add(ctx, approveDraft),
		keepLabels:    st.Add(ctx, keepLabels),
		cacheResponse: st.Add(ctx, insertResponse),
	}
	return s.wrap(st.Err, "open")
}

// do writes w in a transaction.
func (s *Store) do(ctx context.Context, _ int64, w hotWrite) error {
	var b *hotBatch
	err := s.add(ctx, "write", func(tx *sqlx.Tx, done *written) error {
		b = s.newHotBatch(tx, done)
		if err := b.write(context.WithoutCancel(ctx), []hotWrite{w}); err != nil {
			return err
		}
		return b.refused[0]
	})
	if err != nil {
		return err
	}
	s.totals.add(b)
	if w.once != nil {
		crashpoint.Reach(crashpoint.Queue)
	}
	return nil
}

func (s *Store) newHotBatch(tx *sqlx.Tx, w *written) *hotBatch {
	return &hotBatch{store: s, tx: tx, now: NewTime(s.now()), written: w, counts: map[countKey]int64{}}
}

// hotBatch is one transaction of hot writes. On PostgreSQL it holds rows in
// this order, so that two of them never wait for each other in a ring: the
// inboxes, the accounts, the counts, cached responses, drafts; each kind by its key.
type hotBatch struct {
	*written
	store    *Store
	writes   []hotWrite
	refused  []error // for each of writes: why it is left out, or nil
	tx       *sqlx.Tx
	now      Time
	messages []*hotMessage // of inboxes
	emails   []*hotEmail
	inboxes  map[int64]*hotInbox
	news     []newEvent         // to be inserted
	counts   map[countKey]int64 // of sends
	budgets  map[string]*budget // by scope, locked
	listed   map[int64]bool     // accounts with outbound lists
	lists    map[listKey]*mail.List
	// listEntries are those that lists are made of.
	listEntries map[listKey][]ListEntry
}

func (b *hotBatch) write(ctx context.Context, writes []hotWrite) error {
	b.writes, b.refused = writes, make([]error, len(writes))
	for i := range writes {
		b.messages = append(b.messages, writes[i].messages...)
		b.emails = append(b.emails, writes[i].emails...)
	}
	for i := range writes {
		if err := checkBlobs(b.now.Time, writes[i].blobs()...); err != nil {
			return batch.OfItem(i, err)
		}
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
	return b.insertNews(ctx)
}

// insertNews inserts the events that were noted.
func (b *hotBatch) insertNews(ctx context.Context) error {
	if len(b.news) == 0 {
		return nil
	}
	rows, err := b.store.eventRows(ctx, b.tx, b.now, b.news...)
	if err != nil {
		return err
	}
	b.wake(topic{kind: topicEvents})
	if len(rows) > len(b.news) {
		b.wake(topic{kind: topicWebhooks})
	}
	b.news = nil
	return b.store.insert(ctx, b.tx, rows...)
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
		return slices.Contains(w.messages, h) ||
			slices.ContainsFunc(w.emails, func(e *hotEmail) bool { return e.hotMessage == h })
	})
}

// finish writes what follows from the messages: the cached responses in the
// order of their keys, then the approved drafts in the order of their numbers.
// Two batches that write the same ones do so in the same order, and neither
// waits for the other in a circle.
func (b *hotBatch) finish(ctx context.Context) error {
	if err := b.insertHeld(ctx); err != nil {
		return err
	}
	var responses, approvals []int
	for i := range b.writes {
		w := &b.writes[i]
		if b.refused[i] != nil {
			continue
		}
		if w.once != nil {
			responses = append(responses, i)
		}
		if w.approval != nil {
			approvals = append(approvals, i)
		}
	}
	slices.SortStableFunc(responses, func(i, j int) int { return b.writes[i].once.compare(b.writes[j].once) })
	slices.SortStableFunc(approvals, func(i, j int) int { return cmp.Compare(b.writes[i].approval.DraftSeq, b.writes[j].approval.DraftSeq) })
	if err := b.cacheResponses(ctx, responses); err != nil {
		return err
	}
	for _, i := range approvals {
		if err := b.approve(ctx, b.writes[i].approval, &b.writes[i].messages[0].msg); err != nil {
			return itemState(i, err)
		}
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
		keys = append(keys, h.msg.Content.BlobKey)
	}
	for _, h := range w.emails {
		keys = append(keys, h.msg.Content.BlobKey)
	}
	return keys
}

// stored is the row that the response shows, with its id.
func (w *hotWrite) stored() (id string, row any) {
	switch {
	case w.batchID != "":
		return w.batchID, batchOf(w.batchID, w.emails)
	case len(w.emails) > 0:
		e := emailsOf(w.emails)[0]
		return e.ID, e
	}
	return w.messages[0].msg.ID, w.messages[0].msg
}

// event notes an event about a message. data is JSON.
func (b *hotBatch) event(id string, typ EventType, m *Message, data string) {
	b.news = append(b.news, newEvent{notice{m.AccountID, m.InboxSeq, m.Seq, id, typ}, m.TestMode, json.RawMessage(data)})
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

// Why a transaction was rolled back. Both come with ErrUnavailable.
var (
	// errLocked means that another transaction holds a row for longer than lock_timeout.
	errLocked = errors.New("another transaction holds the row")
	// errConflict means that each of maxTries attempts conflicted with other transactions.
	errConflict = errors.New("other transactions conflict with this one")
)
