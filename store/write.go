package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/engine"
)

// inTx runs do in a transaction and returns when what it wrote is on the disk. When do
// fails, nothing is written. do may run again: PostgreSQL asks for it after a conflict,
// and others may share the transaction (see committer). So do sets all that it returns
// anew, and reads through tx alone.
func (s *Store) inTx(ctx context.Context, what string, do func(*sqlx.Tx) error) error {
	return s.wrap(s.committer.write(ctx, 0, do), what)
}

// commitError is the error of a commit: the transaction may have been committed.
type commitError struct{ err error }

func (e *commitError) Error() string { return e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

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

func errIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

const (
	// maxShared is the most functions that share one transaction, and maxSharedPostgres
	// the most on PostgreSQL, where up to postgresWriters of them are under way.
	maxShared, maxSharedPostgres = 256, 32
	postgresWriters              = 3
	// commitTimeout is how long a caller waits for a turn, and for a commit.
	commitTimeout = 30 * time.Second

	// waitBriefly lets a shared transaction wait for a row for less time than a deadlock
	// takes to be found: others are not held up by one inbox.
	waitBriefly = `SET LOCAL lock_timeout = '200ms'`

	beginPart  = `SAVEPOINT part`
	keepPart   = `RELEASE part`
	returnPart = `ROLLBACK TO part`
)

// errShared means that another function of the transaction failed.
var errShared = errors.New("another write in the transaction failed")

var errClosed = fmt.Errorf("%w: the store is closed", ErrUnavailable)

// committer runs the functions that write. Those that wait run one after the other in one
// transaction and share one sync. Their callers wait for it.
//
// SQLite has one writer: all functions wait for it. Each runs in a savepoint, and one that
// fails is rolled back alone. On PostgreSQL those share a transaction that name the one
// row that they lock: they run in the order of these rows, and wait for other rows
// only briefly. If one fails, it runs again in a transaction of its own, with those that
// lock the same row, and the others share another one. If one of these fails too, each of
// them runs alone. A savepoint each would cost more round trips than they share.
type committer struct {
	db       *sqlx.DB
	prepared *engine.Prepared
	conflict func(error) bool // reports whether a transaction can be tried again
	alone    bool             // the database has one writer
	most     int              // functions in a transaction
	queue    chan *part
	ended    sync.WaitGroup

	mu     sync.RWMutex // held for reading while sending to queue
	closed bool

	began atomic.Int64 // when the transaction under way of the one writer began, in Unix nanoseconds; 0: none is
}

// part is a function that shares a transaction.
type part struct {
	ctx      context.Context //nolint:containedctx // of the caller, who waits
	do       func(*sqlx.Tx) error
	locks    int64 // the row that it locks, or 0
	again    bool  // it was in a shared transaction that failed
	state    atomic.Int32
	done     chan error
	panicked any // what do panicked with
}

// The states of a part. In the first and the last one its caller may leave.
const (
	partWaits int32 = iota
	partRuns
	partCommits
	partLeft
)

// newCommitter starts the goroutines that commit. close ends them.
func newCommitter(db *sqlx.DB, prepared *engine.Prepared, e engine.Engine) *committer {
	c := &committer{
		db: db, prepared: prepared, alone: e.Alone(), most: maxShared, queue: make(chan *part, maxShared),
		conflict: func(err error) bool { return e.Fault(err) == engine.Conflict },
	}
	writers := 1
	if !c.alone {
		writers, c.most = postgresWriters, maxSharedPostgres
	}
	for range writers {
		c.ended.Go(c.run)
	}
	return c
}

// write runs do in a transaction, and returns when it is on the disk or do has failed.
// do may run again, after a transaction that failed because of another function. locks
// is the row that do locks, if others may share the transaction. A commit that takes
// longer than commitTimeout is ErrUnavailable, and what do wrote may be stored.
func (c *committer) write(ctx context.Context, locks int64, do func(*sqlx.Tx) error) error {
	attempt := c.tryAlone
	if c.alone || locks != 0 {
		attempt = c.share
	}
	err := attempt(ctx, &part{ctx: ctx, do: do, locks: locks, done: make(chan error, 1)})
	for try := 1; try < maxTries && (c.conflict(err) || errors.Is(err, errShared)); try++ {
		work.Pause(ctx, rand.N(time.Duration(try)*retryPause), nil) //nolint:gosec // no secret
		err = c.tryAlone(ctx, &part{ctx: ctx, do: do, done: make(chan error, 1)})
	}
	return err
}

// tryAlone runs a function in a transaction of its own.
func (c *committer) tryAlone(ctx context.Context, p *part) error {
	c.attempt(ctx, []*part{p})
	if p.panicked != nil {
		panic(p.panicked)
	}
	return <-p.done
}

// share runs a function in a transaction with others.
func (c *committer) share(ctx context.Context, p *part) error {
	limit := time.NewTimer(commitTimeout)
	defer limit.Stop()
	if err := c.enqueue(p, limit.C); err != nil {
		return err
	}
	ended, late := ctx.Done(), limit.C
	for {
		select {
		case err := <-p.done:
			if p.panicked != nil {
				panic(p.panicked)
			}
			return err
		case <-ended:
			if p.state.CompareAndSwap(partWaits, partLeft) {
				return ctx.Err()
			}
			ended = nil // the outcome is near
		case <-late:
			err := fmt.Errorf("%w: the write did not end within %v", ErrUnavailable, commitTimeout)
			if p.state.CompareAndSwap(partWaits, partLeft) {
				return err
			}
			if p.state.CompareAndSwap(partCommits, partLeft) {
				return &commitError{err}
			}
			late = nil
		}
	}
}

func (c *committer) enqueue(p *part, late <-chan time.Time) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return errClosed
	}
	select {
	case c.queue <- p:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-late:
		return fmt.Errorf("%w: no turn to write within %v", ErrUnavailable, commitTimeout)
	}
}

// close writes what waits and ends the goroutine.
func (c *committer) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
	c.mu.Unlock()
	c.ended.Wait()
}

// busySince returns when the transaction under way began.
func (c *committer) busySince() (since time.Time, busy bool) {
	ns := c.began.Load()
	return time.Unix(0, ns), c.alone && ns != 0
}

func (c *committer) run() {
	for first := range c.queue {
		c.began.Store(time.Now().UnixNano())
		c.commit(c.gather(first))
		c.began.Store(0)
	}
}

// commit runs functions that share transactions. A server that does not respond holds up
// a writer no longer than the callers wait.
func (c *committer) commit(parts []*part) {
	ctx := context.Background()
	if !c.alone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commitTimeout)
		defer cancel()
	}
	for len(parts) > 0 && ctx.Err() == nil {
		parts = c.attempt(ctx, parts)
	}
	finish(parts, errShared)
}

// gather returns all that waits, in the order of the rows that it locks. Callers that the
// last commit has just returned to get one chance to come first: one transaction for all
// costs less than two.
func (c *committer) gather(first *part) []*part {
	parts, yielded := []*part{first}, false
	for len(parts) < c.most {
		select {
		case p, ok := <-c.queue:
			if ok {
				parts = append(parts, p)
				continue
			}
			yielded = true
		default:
		}
		if yielded {
			break
		}
		runtime.Gosched()
		yielded = true
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return cmp.Compare(a.locks, b.locks) })
	return parts
}

// attempt runs parts in one transaction. It returns those that have to run again, because
// another one ended the transaction.
func (c *committer) attempt(ctx context.Context, parts []*part) (again []*part) {
	var tx *sqlx.Tx
	err := c.prepared.Prepare(ctx)
	if err == nil {
		tx, err = c.db.BeginTxx(ctx, nil)
	}
	if err != nil {
		finish(parts, err)
		return nil
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	if len(parts) > 1 && !c.alone {
		if _, err := tx.ExecContext(ctx, waitBriefly); err != nil {
			finish(parts, errShared)
			return nil
		}
	}
	var written []*part
	failures := map[*part]error{}
	for i, p := range parts {
		if !p.state.CompareAndSwap(partWaits, partRuns) && !p.state.CompareAndSwap(partCommits, partRuns) {
			continue // its caller has left
		}
		failed, open := c.runPart(ctx, tx, p, len(parts) == 1 || !c.alone)
		switch {
		case failed != nil && len(parts) > 1 && !c.alone:
			for _, q := range append(written, parts[i:]...) {
				if q == p || q.again || q.locks == p.locks {
					q.done <- errShared
					continue
				}
				q.again = true
				again = append(again, q)
			}
			return again
		case failed == nil || open && len(parts) > 1: // why it failed may be what the others wrote
			p.state.Store(partCommits)
			written = append(written, p)
			failures[p] = failed
			continue
		case open:
			p.done <- failed
			continue
		case p.ctx.Err() != nil:
			p.done <- failed
			return append(written, parts[i+1:]...)
		}
		finish(append(written, parts[i:]...), failed)
		return nil
	}
	if len(written) == 0 {
		return nil
	}
	if err = tx.Commit(); err != nil {
		err = &commitError{err}
	}
	for _, p := range written {
		p.done <- cmp.Or(err, failures[p])
	}
	return nil
}

func finish(parts []*part, err error) {
	for _, p := range parts {
		p.done <- err
	}
}

// runPart runs one function, plainly or in a savepoint. open reports whether the
// transaction is still open after a failure.
func (c *committer) runPart(ctx context.Context, tx *sqlx.Tx, p *part, plain bool) (err error, open bool) {
	if plain {
		return p.run(tx), true
	}
	if _, err := c.prepared.Exec(ctx, tx, beginPart); err != nil {
		return err, false
	}
	if err = p.run(tx); err == nil {
		_, err = c.prepared.Exec(ctx, tx, keepPart)
		return err, false
	}
	if _, e := c.prepared.Exec(ctx, tx, returnPart); e != nil {
		return err, false
	}
	_, e := c.prepared.Exec(ctx, tx, keepPart)
	return err, e == nil
}

func (p *part) run(tx *sqlx.Tx) (err error) {
	defer func() {
		if p.panicked = recover(); p.panicked != nil {
			err = fmt.Errorf("panic: %v", p.panicked)
		}
	}()
	return p.do(tx)
}
