package store

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

const (
	// checkpointEvery is after how many hot writes the write-ahead log is brought
	// into the database file.
	checkpointEvery = 256
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

// wrote counts n hot writes.
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		}
		// What fails now, and what readers still hold, the next one does.
		_, _ = c.db.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
	}
}

func (c *checkpointer) close() error {
	c.stop()
	c.running.Wait()
	return c.db.Close()
}
