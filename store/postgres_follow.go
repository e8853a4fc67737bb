package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lib/pq"
)

const (
	postgresChannel = "postroom"
	notifyEvery     = 50 * time.Millisecond
	followEvery     = time.Second
	// followMost is for how many new events inboxes are woken one by one; for
	// more, everybody is.
	followMost = 2000
)

func (d *postgresDialect) wrote(int) {
	select {
	case d.kick <- struct{}{}:
	default: // one is waiting already
	}
}

// notifier sends at most one NOTIFY each notifyEvery, outside of any
// transaction: inside, it would make all commits wait for each other. A lost
// one is no harm, since every node polls too.
func (d *postgresDialect) notifier() {
	defer close(d.notifierDone)
	for {
		select {
		case <-d.done:
			return
		case <-d.kick:
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, _ = d.read.ExecContext(ctx, "NOTIFY "+postgresChannel)
		cancel()
		select {
		case <-d.done:
			return
		case <-time.After(notifyEvery):
		}
	}
}

// follow looks for events of other nodes on their hint, and every second
// whatever happens to the hints.
func (d *postgresDialect) follow(ctx context.Context, log *slog.Logger, woken func(inboxes []int64, all bool)) {
	l := pq.NewListener(d.url, 100*time.Millisecond, time.Second, nil)
	listening := make(chan struct{})
	go func() { // Listen blocks for as long as the server is away
		defer close(listening)
		if err := l.Listen(postgresChannel); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "no hints from other nodes, only the poll", "error", err)
		}
	}()
	defer func() {
		_ = l.Close() // it is open; this ends Listen too
		<-listening
		go func() { // the listener blocks on who does not read, and ends within a second
			for range l.Notify {
			}
		}()
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	f := follower{dialect: d, woken: woken}
	failing := false
	for {
		err := f.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot look for events of other nodes", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-l.Notify: // also after a reconnect
		case <-tick.C:
		}
	}
}

// follower reads the events that it has not seen. An event gets its number
// before its transaction commits, so that one with a lower number may appear
// later than one with a higher: the follower does not pass a number before all
// transactions that may hold a lower one have ended. A transaction writes
// something else before its first event, so it is known to the server by then.
type follower struct {
	dialect *postgresDialect
	woken   func(inboxes []int64, all bool)
	started bool  // from is known
	from    int64 // no event up to here can appear any more
	mark    *followMark
}

// followMark is what was newest at one moment.
type followMark struct {
	event int64 // the newest event
	tx    int64 // no transaction from here on had begun to write
}

func (f *follower) look(ctx context.Context) error {
	const stand = `SELECT coalesce((SELECT max(seq) FROM events), 0) AS newest,
		cast(cast(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) AS oldest_tx,
		cast(cast(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) AS next_tx`
	var now struct {
		Newest   int64 `db:"newest"`
		OldestTx int64 `db:"oldest_tx"` // of those that have not ended
		NextTx   int64 `db:"next_tx"`
	}
	if err := f.dialect.read.GetContext(ctx, &now, stand); err != nil {
		return fmt.Errorf("newest event: %w", err)
	}
	switch {
	case !f.started: // what was under way when the store opened has numbers that are not known
		f.woken(nil, true)
	case f.mark != nil || now.Newest > f.from:
		if err := f.wake(ctx); err != nil {
			return err
		}
	}
	if f.mark != nil && now.OldestTx >= f.mark.tx {
		f.from, f.mark, f.started = f.mark.event, nil, true
	}
	if f.mark == nil && (now.Newest > f.from || !f.started) {
		f.mark = &followMark{event: now.Newest, tx: now.NextTx}
	}
	return nil
}

// wake wakes the inboxes of the events that may be new.
func (f *follower) wake(ctx context.Context) error {
	const since = `SELECT coalesce(inbox_seq, 0) FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`
	var inboxes []int64
	if err := f.dialect.read.SelectContext(ctx, &inboxes, since, f.from, followMost+1); err != nil {
		return fmt.Errorf("new events: %w", err)
	}
	if len(inboxes) > 0 {
		f.woken(inboxes, len(inboxes) > followMost)
	}
	return nil
}
