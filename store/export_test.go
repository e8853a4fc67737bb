package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"github.com/postroom/postroom/store/internal/engine"
)

// Pragma reads a setting of the connection that writes.
func Pragma(ctx context.Context, s *Store, name string) (string, error) {
	var v string
	err := s.write.GetContext(ctx, &v, "PRAGMA "+name)
	return v, err
}

// MigrateWith migrates to a version that has one more step.
func MigrateWith(ctx context.Context, cfg Config, step func(ctx context.Context, tx *sql.Tx) error) (steps int, err error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.migrate(ctx, goose.NewGoMigration(2, &goose.GoFunc{RunTx: step}, nil))
}

// MaxAddresses is how many addresses are counted each by itself.
const MaxAddresses = maxAddresses

// SweepRates forgets the windows that have ended, and says how many are left.
func (s *Store) SweepRates(ctx context.Context) (int, error) {
	if err := s.rates.sweep(ctx, s.now()); err != nil {
		return 0, err
	}
	if m, ok := s.rates.(*memoryRates); ok {
		n := 0
		for _, windows := range m.kinds {
			n += len(windows)
		}
		return n, nil
	}
	var n int
	err := s.read.GetContext(ctx, &n, `SELECT count(*) FROM rate_limits`)
	return n, err
}

// Unindex takes messages out of the full-text index, as retention does.
func (s *Store) Unindex(ctx context.Context, seqs ...int64) error {
	return s.inTx(ctx, "unindex", func(tx *sqlx.Tx) error { return s.unindex(ctx, tx, seqs) })
}

// Narrow makes the bounds of a page of a list so small that a test comes to
// them.
func (s *Store) Narrow(listScan, searchLook, searchRead, searchBuckets int, bucketSize int64) {
	l := &s.limits
	l.listScan, l.searchLook, l.searchRead, l.searchBuckets, l.bucketSize = listScan, searchLook, searchRead, searchBuckets, bucketSize
}

// NarrowReplay sets how many events one replay considers.
func (s *Store) NarrowReplay(n int) { s.limits.replay = n }

// WaitToSettle sets how long a page of the event log waits for open transactions.
func (s *Store) WaitToSettle(d time.Duration) { s.limits.settle = d }

// NarrowBytes bounds how many bytes of mail a page of a search reads.
func (s *Store) NarrowBytes(n int) { s.limits.searchReadBytes = n }

// DueDrafts is the query for the drafts that retention deletes from.
const DueDrafts = dueDrafts

// DraftsDue is the query for the drafts that are to be sent or rejected.
const DraftsDue = draftsDue

// HaveWrittenQuery is what HaveWritten asks.
func HaveWrittenQuery(inboxSeq int64, addresses ...string) (query string, args []any) {
	return haveWritten(inboxSeq, addresses, false)
}

// Explain returns the plan of a query as if the tables were large.
func (s *Store) Explain(ctx context.Context, query string, args ...any) (string, error) {
	explain := "EXPLAIN QUERY PLAN "
	postgres := s.engine.Name() == engine.PostgreSQL
	if postgres {
		explain = "EXPLAIN "
	}
	var plan []string
	err := s.inTx(ctx, "explain", func(tx *sqlx.Tx) error {
		if postgres {
			if _, err := tx.ExecContext(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off`); err != nil {
				return err
			}
		}
		rows, err := tx.QueryxContext(ctx, explain+query, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // its error is that of rows.Err
		for plan = nil; rows.Next(); {
			row, err := rows.SliceScan()
			if err != nil {
				return err
			}
			plan = append(plan, fmt.Sprintf("%s", row[len(row)-1]))
		}
		return rows.Err()
	})
	return strings.Join(plan, "\n"), err
}

// SessionSetting reads a setting of a connection that writes.
func SessionSetting(ctx context.Context, s *Store, name string) (string, error) {
	var v string
	err := s.write.GetContext(ctx, &v, "SELECT current_setting('"+name+"')")
	return v, err
}

// StandStill begins a transaction, writes a row, and does nothing until the
// server has ended it; it returns what the next statement then says.
func StandStill(ctx context.Context, s *Store, ended func()) error {
	return s.inTx(ctx, "stand still", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ('still', 'here')`); err != nil {
			return err
		}
		ended()
		_, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE name = 'still'`)
		return err
	})
}

// FirstDue is the query for the next due recipient, as the queue asks it now, or
// as it would ask for the whole queue.
func (s *Store) FirstDue(all bool) (query string, args []any) {
	from := Time{time.UnixMicro(0)}
	if !all {
		from = s.queue.due[WorkRecipients].at(s.now())
	}
	return firstDue(WorkRecipients, from, nil)
}

// LookAtSchema notes whether the schema is newer than this program's, as a node
// does every few seconds.
func (s *Store) LookAtSchema(ctx context.Context) { s.lookAtSchema(ctx) }

// SetMono replaces the monotonic clock of the guard of deletions.
func (s *Store) SetMono(mono func() time.Duration) { s.guard.mono = mono }

// CommitBatch stores received messages in one transaction.
func (s *Store) CommitBatch(ctx context.Context, batch []*NewMessage) error {
	return s.add(ctx, "write", 0, func(tx *sqlx.Tx, w *written) error {
		for _, m := range batch {
			h, err := prepareMessage(m, s.now())
			if err == nil {
				err = s.receive(ctx, tx, []*preparedMessage{h}, w)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TableNames lists the tables of the database, without those of migrations and parts of
// the search index.
func TableNames(ctx context.Context, s *Store) (names []string, err error) {
	q := `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name NOT LIKE 'goose%'`
	if s.engine.Name() == engine.SQLite {
		q = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'
			AND name NOT LIKE 'search\_index\_%' ESCAPE '\'`
	}
	return names, s.read.SelectContext(ctx, &names, q)
}

// NotExported are the tables that an export leaves out.
var NotExported = notExported

// PostgresWriters is how many shared transactions are under way on PostgreSQL.
const PostgresWriters = postgresWriters

// lastRow is the row that Write last said it locks: each time another one.
var lastRow atomic.Int64

// Write runs do in a transaction that others may share.
func (s *Store) Write(ctx context.Context, do func(*sqlx.Tx) error) error {
	return s.wrap(s.committer.write(ctx, lastRow.Add(1), do), "write")
}

// WaitingWrites is how many functions wait to share a transaction.
func (s *Store) WaitingWrites() int { return len(s.committer.queue) }

// Closing reports whether the committer takes no more functions.
func (s *Store) Closing() bool {
	s.committer.mu.RLock()
	defer s.committer.mu.RUnlock()
	return s.committer.closed
}

// ClaimQueries are the queries of a claim of a message: for the inboxes of an account with
// messages to claim, and for the message of an inbox.
func (s *Store) ClaimQueries(in Inbox) (inboxes, message string, inboxArgs, messageArgs []any) {
	f := &MessageFilter{AccountID: in.AccountID, Direction: DirectionIn}
	inboxes, inboxArgs = s.dueInboxes(f, NewTime(s.now()))
	message, messageArgs = s.dueMessage(f, in.Seq, NewTime(s.now()))
	return inboxes, message, inboxArgs, messageArgs
}

// OutgoingStates are the states of an outgoing message and what they mean, and
// OutgoingSteps its steps: from, step, to and a sentence.
func OutgoingStates() (all [][2]string) {
	for _, s := range outgoingStates {
		all = append(all, [2]string{string(s.state), s.says})
	}
	return all
}

func OutgoingSteps() (all [][4]string) {
	for _, t := range transitions {
		all = append(all, [4]string{string(t.from), string(t.on), string(t.to), t.says})
	}
	return all
}

// WakeInbox subscribes to all changes of the messages of an inbox.
func (s *Store) WakeInbox(inboxSeq int64) *Wake {
	return s.wake.subscribe(&Wake{topic: topic{topicInbox, inboxSeq}})
}
