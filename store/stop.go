package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// StopAccount is the scope of a stop of a whole account. The others are the ids of
// inboxes and keys.
const StopAccount = "account"

// stopsEvery is how long a node may send by what it knows of the stops.
const stopsEvery = 200 * time.Millisecond

// stop is an account, inbox or key that sends nothing.
type stop struct {
	AccountID int64  `db:"account_id"`
	Scope     string `db:"scope"`  // what was stopped
	Sender    string `db:"sender"` // Scope, or a key that descends from it
}

// stopsWhere returns the query for the stops with a condition. A stop of a key is also
// one of each key that descends from it.
func stopsWhere(condition string) string {
	return `WITH RECURSIVE own AS (SELECT account_id, scope FROM stops WHERE ` + condition + `),
		held (account_id, scope, sender) AS (SELECT account_id, scope, scope FROM own
			UNION SELECT h.account_id, h.scope, k.id FROM held h JOIN api_keys k ON k.created_by = h.sender WHERE k.account_id = h.account_id)
		SELECT account_id, scope, sender FROM held`
}

// stops remembers what is stopped for a moment, so that delivering many messages
// reads it once.
type stops struct {
	mu   sync.Mutex
	read time.Time // a monotonic time
	all  []stop
}

// Stop stops an account, or one of its inboxes or keys, from sending, on all nodes.
// A stop of a key also stops the keys that descend from it.
// What is queued waits. It returns when it was stopped.
func (s *Store) Stop(ctx context.Context, accountID int64, scope string) (Time, error) {
	const q = `INSERT INTO stops (account_id, scope, at) VALUES ($1, $2, $3) ON CONFLICT (account_id, scope) DO UPDATE SET at = stops.at RETURNING at`
	defer s.queue.stops.forget()
	return transact(ctx, s, "stop sending", func(tx *sqlx.Tx) (Time, error) {
		return getOne[Time](ctx, tx, q, accountID, scope, NewTime(s.now()))
	})
}

// Resume ends a stop. What waited for it becomes due, the first of it at once and the
// rest by ReleaseResumed.
func (s *Store) Resume(ctx context.Context, accountID int64, scope string) (Time, error) {
	const (
		end = `DELETE FROM stops WHERE account_id = $1 AND scope = $2`
		// The clock may have gone back since.
		newest = `SELECT coalesce(max(stopped_due), 0) FROM recipients WHERE account_id = $1 AND stopped_due IS NOT NULL`
		// A later time than that of an earlier resumption, by one millisecond at least.
		note = `UPDATE accounts SET resumed_at = CASE WHEN resumed_at >= $2 THEN resumed_at + 1000 ELSE $2 END WHERE seq = $1`
	)
	now, err := transact(ctx, s, "resume sending", func(tx *sqlx.Tx) (now Time, err error) {
		// This waits for each claim that stops recipients, so that after it there are no more.
		if _, err := tx.ExecContext(ctx, end, accountID, scope); err != nil {
			return now, err
		}
		at, err := s.serverClock(ctx, tx)
		if err != nil {
			return now, err
		}
		last, err := getOne[Time](ctx, tx, newest, accountID)
		if err != nil {
			return now, err
		}
		if !last.After(at) {
			last = NewTime(at)
		}
		_, err = tx.ExecContext(ctx, note, accountID, NewTime(last.Time))
		return NewTime(at), err
	})
	s.queue.stops.forget()
	if err != nil {
		return now, err
	}
	if _, err := s.ReleaseResumed(ctx); err != nil { // the queue of each node tries again
		s.log.WarnContext(ctx, "resumed mail is not released yet", "account_id", accountID, "error", err)
	}
	return now, nil
}

// resumedBatch is how many recipients one transaction makes due after a stop.
const resumedBatch = 500

// ReleaseResumed makes some of the recipients due that waited for a stop that has
// ended, and returns how many. Those of other stops are stopped again when they are
// claimed, and wait for those. They are due from now on, and their time for retries starts
// again. A node that is paused releases none.
func (s *Store) ReleaseResumed(ctx context.Context) (n int, err error) {
	const (
		next = `SELECT seq, resumed_at FROM accounts WHERE resumed_at IS NOT NULL ORDER BY seq LIMIT 1`
		wake = `UPDATE recipients SET next_attempt_at = CASE WHEN status = 'queued' THEN cast($3 AS bigint) END, stopped_due = NULL, created_at = $3
			WHERE stopped_due IS NOT NULL AND seq IN (SELECT seq FROM recipients
				WHERE account_id = $1 AND stopped_due IS NOT NULL AND stopped_due <= $2 ORDER BY seq LIMIT $4)`
		// Another node may have released the ones that were found here, and more may wait.
		done = `UPDATE accounts SET resumed_at = NULL WHERE seq = $1 AND resumed_at = $2 AND NOT EXISTS
			(SELECT 1 FROM recipients WHERE account_id = $1 AND stopped_due IS NOT NULL AND stopped_due <= $2)`
	)
	if s.Paused() != nil {
		return 0, nil
	}
	var all []struct {
		Seq       int64 `db:"seq"`
		ResumedAt Time  `db:"resumed_at"`
	}
	if err := s.read.SelectContext(ctx, &all, next); err != nil || len(all) == 0 {
		return 0, s.wrap(err, "resumed accounts")
	}
	a := all[0]
	err = s.inTx(ctx, "release what was stopped", func(tx *sqlx.Tx) error {
		n, err = affected(tx.ExecContext(ctx, wake, a.Seq, a.ResumedAt, NewTime(s.now()), resumedBatch))
		if err == nil && n == 0 {
			_, err = tx.ExecContext(ctx, done, a.Seq, a.ResumedAt)
		}
		return err
	})
	if err == nil && n > 0 {
		s.changed([]topic{{kind: topicQueue}}, 1)
	}
	return n, err
}

// Stops returns the scopes of an account that are stopped.
func (s *Store) Stops(ctx context.Context, accountID int64) ([]string, error) {
	return readAll[string](ctx, s, "stops", `SELECT scope FROM stops WHERE account_id = $1 ORDER BY scope`, accountID)
}

// IsStopped reports whether the sender of a claimed message is stopped. The result is at most
// stopsEvery old.
func (s *Store) IsStopped(ctx context.Context, c Claimed) (bool, error) {
	all, err := s.knownStops(ctx)
	return slices.ContainsFunc(all, c.stoppedBy), err
}

// knownStops returns all stops, as they were at most stopsEvery ago.
func (s *Store) knownStops(ctx context.Context) ([]stop, error) {
	s.queue.stops.mu.Lock()
	defer s.queue.stops.mu.Unlock()
	if !s.queue.stops.read.IsZero() && time.Since(s.queue.stops.read) < stopsEvery {
		return s.queue.stops.all, nil
	}
	began := time.Now()
	var all []stop
	if err := s.read.SelectContext(ctx, &all, stopsWhere("true")); err != nil {
		return nil, s.wrap(err, "stops")
	}
	s.queue.stops.read, s.queue.stops.all = began, all
	return all, nil
}

func (k *stops) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = time.Time{}
}

func (c *Claimed) stoppedBy(s stop) bool {
	return s.stops(c.Message.AccountID, c.SenderID, deref(c.Message.SentBy))
}

// stops reports whether the stop holds for what a key or person sends from an inbox.
func (s stop) stops(account int64, inbox, by string) bool {
	return s.AccountID == account && (s.Sender == StopAccount || s.Sender == inbox || s.Sender == by)
}

// leaveStopped makes the claimed recipients of stopped senders wait for Resume from now on,
// by the clock of the server, and returns the others.
func (s *Store) leaveStopped(ctx context.Context, tx *sqlx.Tx, claimed []Claimed, now Time) ([]Claimed, error) {
	// A recipient that another stop holds must not look like one of the stop that ended.
	const wait = `UPDATE recipients SET next_attempt_at = NULL, leased = false, attempts = attempts - 1, stopped_due =
		(SELECT CASE WHEN a.resumed_at >= ? THEN a.resumed_at + 1 ELSE ? END FROM accounts a WHERE a.seq = recipients.account_id) WHERE seq IN (?)`
	known, err := s.knownStops(ctx)
	if err != nil || len(known) == 0 {
		return claimed, err
	}
	accounts := each(claimed, func(c Claimed) int64 { return c.Message.AccountID })
	var all []stop
	if err := selectIn(ctx, tx, &all, stopsWhere("account_id IN (?)"+s.engine.KeepRow()), accounts); err != nil {
		return nil, errIn("stops", err)
	}
	var seqs []int64
	pass := claimed[:0]
	for i := range claimed {
		c := claimed[i]
		if slices.ContainsFunc(all, c.stoppedBy) {
			seqs = append(seqs, c.Seq)
		} else {
			pass = append(pass, c)
		}
	}
	if len(seqs) == 0 {
		return pass, nil
	}
	return pass, errIn("leave what is stopped", execIn(ctx, tx, wait, now, now, seqs))
}
