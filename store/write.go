package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/batch"
)

// hotWrite is what came of attempts to deliver.
type hotWrite struct {
	attempts []*Attempt
	reports  []*Report
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
	suppressions batch.Insert

	lockMessages, lockRecipients, statuses batch.Rows

	updateRecipients, keepSignatures, moveMessages, updateDeliveries batch.Rows

	reported, updateReported, relayedAs, openEmail, watched, pause, cacheResponse *sql.Stmt
}

// prepareHot prepares the statements of the hot writes.
func (s *Store) prepareHot(ctx context.Context) error {
	st, d := s.stmts, s.engine
	s.hot = hotStatements{
		suppressions: st.Insert(ctx, "suppressions", suppressionWritten, widen),

		lockMessages:   st.Lookup(ctx, 1, lockMessages+d.LockRow()),
		lockRecipients: st.Lookup(ctx, 1, lockRecipients+d.LockRow()),
		statuses:       st.Lookup(ctx, 1, recipientStatuses),

		updateRecipients: st.Update(ctx, updateRecipients, "bigint", "bigint", "text", "bigint", "bigint", "text", "bigint", "bigint", "bigint"),
		keepSignatures:   st.Update(ctx, keepSignatures, "bigint", "text"),
		moveMessages:     st.Update(ctx, moveMessages, "bigint", "text", "bigint", "bigint", "bigint"),
		updateDeliveries: st.Update(ctx, updateDeliveries, "bigint", "bigint", "text", "bigint", "bigint", "text", "text", "bigint", "bigint"),

		reported:       st.Add(ctx, reportedRecipient),
		updateReported: st.Add(ctx, updateReported),
		relayedAs:      st.Add(ctx, relayedAs),
		openEmail:      st.Add(ctx, openEmail),
		watched:        st.Add(ctx, watchedSince),
		pause:          st.Add(ctx, pauseSender),
		cacheResponse:  st.Add(ctx, insertResponse),
	}
	return s.wrap(st.Err, "open")
}

// do writes w in a transaction.
func (s *Store) do(ctx context.Context, _ int64, w hotWrite) error {
	var b *hotBatch
	err := s.add(ctx, "write", func(tx *sqlx.Tx, done *written) error {
		b = s.newHotBatch(tx, done)
		return b.write(context.WithoutCancel(ctx), []hotWrite{w})
	})
	if err != nil {
		return err
	}
	s.totals.add(b)
	b.logPauses(ctx)
	return nil
}

func (s *Store) newHotBatch(tx *sqlx.Tx, w *written) *hotBatch {
	return &hotBatch{store: s, tx: tx, now: NewTime(s.now()), written: w, counts: map[countKey]int64{}, tries: map[RecipientStatus]int64{}}
}

// hotBatch is one transaction of hot writes. On PostgreSQL it holds rows in
// this order, so that two of them never wait for each other in a ring: the
// messages of the attempts, their recipients, the inboxes, the accounts, the
// counts, cached responses, drafts; each kind by its key.
type hotBatch struct {
	*written
	store  *Store
	writes []hotWrite
	tx     *sqlx.Tx
	now    Time
	news   []newEvent         // to be inserted
	counts map[countKey]int64 // of sends
	tries  map[RecipientStatus]int64
	paused []pause // accounts that stop sending
}

func (b *hotBatch) write(ctx context.Context, writes []hotWrite) error {
	b.writes = writes
	var attempts []*Attempt
	var reports []*Report
	for i := range writes {
		attempts = append(attempts, writes[i].attempts...)
		reports = append(reports, writes[i].reports...)
	}
	if err := b.recordAttempts(ctx, attempts, reports); err != nil {
		return err
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Mark)
	}
	if err := b.countSends(ctx); err != nil {
		return err
	}
	if err := b.insertNews(ctx); err != nil {
		return err
	}
	if len(attempts) > 0 {
		crashpoint.Reach(crashpoint.Event)
	}
	return nil
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
