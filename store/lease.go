package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
)

// Work is a table of work, of which one node does a row for a while. Five columns
// say what is left to do and who does it: status; attempts, with the one under way;
// fence, which rises with each claim; next_attempt_at, when the row is due, or NULL
// for never; and leased, while which next_attempt_at is the end of the claim. So the
// work of a node that dies is due again by itself.
type Work string

// The tables of work.
const (
	WorkRecipients Work = "recipients"         // of messages; their keys are domains
	WorkDeliveries Work = "webhook_deliveries" // their keys are the numbers of endpoints
	WorkMessages   Work = "messages"           // that clients work on, and not this program
)

// keyColumn is the column of work.Busy.Keys.
func (w Work) keyColumn() string {
	if w == WorkDeliveries {
		return "endpoint_seq"
	}
	return "domain"
}

// dueFrom are the conditions for rows that are due from a time on, but not busy.
func (w Work) dueFrom(from Time, busy *work.Busy) *where {
	conds := conditions("next_attempt_at >= ?", from)
	if busy != nil {
		notIn(conds, w.keyColumn(), busy.Keys)
		notIn(conds, "account_id", busy.Accounts)
	}
	return conds
}

// order is the order in which a claim takes the rows that are due.
type order string

const (
	oldestFirst order = ` ORDER BY next_attempt_at, seq`
	newestFirst order = ` ORDER BY next_attempt_at DESC, seq DESC`
)

// findDue locks up to limit rows that are due and returns their numbers, without
// those that busy or others name.
func (s *Store) findDue(ctx context.Context, tx *sqlx.Tx, w Work, now Time, limit int, busy *work.Busy, by order, others ...int64) (seqs []int64, err error) {
	if limit <= 0 {
		return nil, nil
	}
	conds := w.dueFrom(s.queue.due[w].at(s.now()), busy)
	conds.add("next_attempt_at <= ?", now)
	notIn(conds, "seq", others)
	q := `SELECT seq FROM ` + string(w) + conds.sql() + string(by) + ` LIMIT ` + conds.arg(limit) + s.engine.SkipLocked()
	return seqs, errIn("find what is due", tx.SelectContext(ctx, &seqs, s.engine.Text(q), conds.args...))
}

// claim claims rows that are locked, and reads them into rows in the order of their
// numbers. The claim ends at until: pushing the next attempt there is the claim.
func (s *Store) claim(ctx context.Context, tx *sqlx.Tx, w Work, seqs []int64, until Time, rows any, columns string) error {
	if len(seqs) == 0 {
		return nil
	}
	q := `UPDATE ` + string(w) + ` SET next_attempt_at = $2, leased = true, fence = fence + 1, attempts = attempts + 1
		WHERE ` + s.engine.OneOf("seq", "$1")
	read := `SELECT ` + columns + ` FROM ` + string(w) + ` WHERE ` + s.engine.OneOf("seq", "$1") + ` ORDER BY seq`
	if _, err := tx.ExecContext(ctx, q, s.engine.List(seqs), until); err != nil {
		return errIn("claim", err)
	}
	return errIn("read what is claimed", tx.SelectContext(ctx, rows, read, s.engine.List(seqs)))
}

// leaseEnd is the result of an attempt.
type leaseEnd struct {
	seq, fence int64 // as claimed
	status     string
	next       *Time // of the next attempt; nil if that was the last
	untried    bool  // there was no attempt
}

// endLease records the result of an attempt, and reports whether the claim lasted until
// then. own sets more columns; its parameters begin with $6.
func (s *Store) endLease(ctx context.Context, tx *sqlx.Tx, w Work, e leaseEnd, own string, args ...any) (bool, error) {
	q := `UPDATE ` + string(w) + ` SET leased = false, status = $3, next_attempt_at = $4, attempts = attempts - $5` + own + `
		WHERE seq = $1 AND fence = $2 AND leased`
	untried := 0
	if e.untried {
		untried = 1
	}
	n, err := affected(s.prepared.Exec(ctx, tx, q, append([]any{e.seq, e.fence, e.status, e.next, untried}, args...)...))
	return n == 1, err
}

// RenewLeases lets claims last for the time of lease from now, and returns those
// that are no more: the row was claimed again, or its attempt is recorded. A claim
// whose time is over and that no one has taken is renewed as well.
func (s *Store) RenewLeases(ctx context.Context, w Work, claims []work.Lease, lease time.Duration) (lost []work.Lease, err error) {
	if len(claims) == 0 {
		return nil, nil
	}
	// In the order of seq, as attempts are recorded, so that no one waits in a
	// ring.
	find := `SELECT seq AS "row", fence FROM ` + string(w) + ` WHERE leased AND ` + s.engine.OneOf("seq", "$1") + ` ORDER BY seq` + s.engine.LockRow()
	push := `UPDATE ` + string(w) + ` SET next_attempt_at = $2 WHERE ` + s.engine.OneOf("seq", "$1")
	err = s.inTx(ctx, "renew leases", func(tx *sqlx.Tx) error {
		var leased []work.Lease
		if err := tx.SelectContext(ctx, &leased, find, s.engine.List(each(claims, func(l work.Lease) int64 { return l.Row }))); err != nil {
			return err
		}
		kept := make([]int64, 0, len(claims))
		lost = nil
		for _, c := range claims {
			if slices.Contains(leased, c) {
				kept = append(kept, c.Row)
			} else {
				lost = append(lost, c)
			}
		}
		now, err := s.serverClock(ctx, tx)
		if err != nil || len(kept) == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, push, s.engine.List(kept), NewTime(now.Add(lease)))
		return err
	})
	return lost, err
}

// claimName claims work that has a name and no row until then, and reports whether no
// other node has it.
func (s *Store) claimName(ctx context.Context, name string, until time.Time) (bool, error) {
	const q = `INSERT INTO settings (name, value) VALUES ($1, cast(cast($2 AS bigint) AS text))
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE cast(settings.value AS bigint) <= $3`
	n, err := s.exec(ctx, "claim "+name, q, name, NewTime(until), NewTime(s.now()))
	return n == 1, err
}

// ReleaseLeases makes the rows due at once that were claimed by a process that
// died, and returns how many. Only a process that knows itself to be the only one
// can tell, which on SQLite it is: with several nodes on PostgreSQL nothing is
// done, and a lease that no one renews ends by itself.
func (s *Store) ReleaseLeases(ctx context.Context, w Work) (int, error) {
	if !s.engine.Alone() {
		return 0, nil
	}
	q := `UPDATE ` + string(w) + ` SET next_attempt_at = $1, leased = false, fence = fence + 1 WHERE next_attempt_at IS NOT NULL AND leased`
	return s.exec(ctx, "release leases", q, NewTime(s.now()))
}

// NextDue returns when the next row that is not busy becomes due, or nil when there
// is none.
func (s *Store) NextDue(ctx context.Context, w Work, busy *work.Busy) (*Time, error) {
	now, due := s.now(), s.queue.due[w]
	from := due.at(now)
	if from.UnixMicro() == 0 {
		first, err := s.firstDue(ctx, w, from, nil)
		if err != nil {
			return nil, err
		}
		due.found(now, first, true)
		if first == nil || busy == nil {
			return first, nil
		}
		from = due.at(now)
	}
	first, err := s.firstDue(ctx, w, from, busy)
	if err == nil && busy == nil {
		due.found(now, first, false)
	}
	return first, err
}

func (s *Store) firstDue(ctx context.Context, w Work, from Time, busy *work.Busy) (*Time, error) {
	q, args := firstDue(w, from, busy)
	due, err := readAll[Time](ctx, s, "what is due next", q, args...)
	return first(due), err
}

// firstDue is the query for when the first row from a time on is due.
func firstDue(w Work, from Time, busy *work.Busy) (q string, args []any) {
	conds := w.dueFrom(from, busy)
	return `SELECT next_attempt_at FROM ` + string(w) + conds.sql() + ` ORDER BY next_attempt_at LIMIT 1`, conds.args
}

const (
	// dueSlack is by how much a row may become due earlier than one that was found
	// due before: clocks of nodes differ, and transactions take a while.
	dueSlack = 5 * time.Second
	// lookAllEvery is how often a table is searched from its beginning, for rows
	// that came with an older time.
	lookAllEvery = 10 * time.Second
)

// queueState is what a node remembers of the queues.
type queueState struct {
	due    map[Work]*dueFrom
	claims atomic.Uint64 // calls of ClaimRecipients
	stops  stops
}

// dueFrom remembers where the rows that are due begin. An index keeps entries of
// finished rows while a transaction, for example a backup, may still see them. A
// query that starts at the first entry would read all of them.
type dueFrom struct {
	mu   sync.Mutex
	last time.Time // when the row was due that was found due last
	all  time.Time // when the table was last searched from its beginning
}

// at returns from which time on to look, which is zero when it is time to search
// the whole table.
func (d *dueFrom) at(now time.Time) Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if since := now.Sub(d.all); d.last.IsZero() || since < 0 || since >= lookAllEvery {
		return Time{time.UnixMicro(0)}
	}
	return NewTime(d.last.Add(-dueSlack))
}

// found notes the first row that a look found, or nil, when nothing was left out.
// all says that the look began with the whole table.
func (d *dueFrom) found(now time.Time, first *Time, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if all {
		d.all = now
	}
	if first != nil && (!first.After(now) || first.Before(d.last)) {
		d.last = first.Time
	}
}
