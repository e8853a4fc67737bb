package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
)

const (
	// checkpointEvery is after how many writes the write-ahead log is brought
	// into the database file. A page that many of them changed is then written once.
	// As many messages of 4 KB make some 30 MB of log.
	checkpointEvery = 1024
	// checkpointAt is at which size of the log, in pages, the writer does it
	// itself, so that the log cannot grow without end.
	checkpointAt = "wal_autocheckpoint(16000)"
)

// checkpointer brings the write-ahead log into the database file beside the
// writer. In the writer's place it would hold up one commit in a few hundred by
// ten milliseconds and more. It only moves pages that are durable already, so
// that nothing is lost when it does not run or fails.
type checkpointer struct {
	db      *sqlx.DB
	writes  atomic.Int64
	kick    chan struct{}
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newCheckpointer(db *sqlx.DB) *checkpointer {
	c := &checkpointer{db: db, kick: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.running.Go(func() { c.run(ctx) })
	return c
}

// Wrote counts n writes.
func (c *checkpointer) wrote(n int) {
	if c.writes.Add(int64(n)) < checkpointEvery {
		return
	}
	c.writes.Store(0)
	select {
	case c.kick <- struct{}{}:
	default: // one is due already
	}
}

func (c *checkpointer) run(ctx context.Context) {
	work.OnKick(ctx, c.kick, 0, func(ctx context.Context) {
		// What fails now, and what readers still hold, the next one does.
		_, _ = c.db.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
	})
}

const (
	// truncateWait is how long one try to empty the log may hold up the writer
	// while readers still use it, and truncateTries is how many there are.
	truncateWait  = 50 * time.Millisecond
	truncateTries = 20
)

// truncate brings all of the log into the database file and empties it, so that
// it no longer holds what was deleted. It reports whether that was possible:
// readers may have used the log all the time.
func (c *checkpointer) truncate(ctx context.Context) (done bool, err error) {
	conn, err := c.db.Connx(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var usual int64
	if err := conn.GetContext(ctx, &usual, `PRAGMA busy_timeout`); err != nil {
		return false, err
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA busy_timeout = %d`, truncateWait.Milliseconds())); err != nil {
		return false, err
	}
	defer func() {
		_, e := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf(`PRAGMA busy_timeout = %d`, usual))
		err = errors.Join(err, e)
	}()
	for range truncateTries {
		var busy, pages, moved int64
		if err := conn.QueryRowxContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
			return false, err
		}
		if busy == 0 {
			return true, nil
		}
		if !work.Pause(ctx, truncateWait, nil) {
			return false, ctx.Err()
		}
	}
	return false, nil
}

func (c *checkpointer) close() error {
	c.stop()
	c.running.Wait()
	return c.db.Close()
}
