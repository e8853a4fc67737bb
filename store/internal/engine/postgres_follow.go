package engine

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/postroom/postroom/internal/work"
)

const (
	postgresChannel = "postroom"
	notifyEvery     = 50 * time.Millisecond
	followEvery     = time.Second
)

// Scrub does nothing: the server manages its own files.
func (*postgresEngine) Scrub(context.Context) (bool, error) { return true, nil }

func (d *postgresEngine) Wrote(int) {
	select {
	case d.kick <- struct{}{}:
	default: // one is waiting already
	}
}

// notify sends at most one NOTIFY each notifyEvery, outside of any transaction:
// inside, it would make all commits wait for each other. A lost one does no harm,
// since every node polls too.
func (d *postgresEngine) notify(ctx context.Context) {
	work.OnKick(ctx, d.kick, notifyEvery, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = d.read.ExecContext(ctx, "NOTIFY "+postgresChannel)
	})
}

// Follow calls look on each hint of another node, and every second whatever
// happens to the hints.
func (d *postgresEngine) Follow(ctx context.Context, log *slog.Logger, look func(context.Context) error) {
	l := pq.NewDialListener(d.dialer, d.url, 100*time.Millisecond, time.Second, nil)
	listening := make(chan struct{})
	go func() { // Listen blocks for as long as the server is away
		defer close(listening)
		if err := l.Listen(postgresChannel); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "no hints from other nodes, only the poll", "error", err)
		}
		d.keepListening(ctx, l)
	}()
	defer func() {
		_ = l.Close() // it is open; this ends Listen too
		<-listening
	}()
	hint := make(chan struct{}, 1)
	go func() { // until the listener ends, within a second after Close
		for range l.Notify { // also after a reconnect
			select {
			case hint <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	failing := false
	work.Due(ctx, func(ctx context.Context) time.Duration {
		err := look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot look for events of other nodes", "error", err)
		}
		failing = err != nil
		return followEvery
	}, hint, nil)
}

// keepListening pings the listener's connection, more often
// than a read on it may take. A connection that the network has lost is replaced.
func (d *postgresEngine) keepListening(ctx context.Context, l *pq.Listener) {
	interval := min(5*time.Second, d.within/4)
	if work.Pause(ctx, interval, nil) {
		work.Every(ctx, interval, func(context.Context) {
			_ = l.Ping() // the listener notices by itself that the connection is gone
		})
	}
}

// EventLog reads the lock that every INSERT holds on its table, from before it
// takes a number until its transaction has ended: its holder may bring an event
// with a number lower than the newest, and no other transaction can. Unlike the
// oldest transaction of the server this says nothing of other work on it, which
// may take long. A transaction is visible to others before it gives its locks
// back, so a reader that reads events after this sees those of the transactions
// that are not named.
func (d *postgresEngine) EventLog(ctx context.Context) (LogState, error) {
	return d.log(ctx, "events", "events", "RowExclusiveLock")
}

// MessageLog reads the lock on inboxes: who adds a message to an inbox locks that row
// before the message gets its number.
func (d *postgresEngine) MessageLog(ctx context.Context) (LogState, error) {
	return d.log(ctx, "messages", "inboxes", "RowShareLock")
}

func (d *postgresEngine) log(ctx context.Context, table, locked, mode string) (LogState, error) {
	q := `SELECT coalesce((SELECT max(seq) FROM ` + table + `), 0) AS newest,
		coalesce(pg_sequence_last_value(cast(pg_get_serial_sequence('` + table + `', 'seq') AS regclass)), 0) AS last_number,
		coalesce((SELECT string_agg(DISTINCT virtualtransaction, ' ') FROM pg_locks
			WHERE locktype = 'relation' AND relation = cast('` + locked + `' AS regclass) AND mode = '` + mode + `' AND granted
			  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), '') AS writers`
	var row struct {
		Newest  int64  `db:"newest"`
		Last    int64  `db:"last_number"`
		Writers string `db:"writers"`
	}
	err := d.read.GetContext(ctx, &row, q)
	return LogState{Newest: row.Newest, Last: row.Last, Writers: strings.Fields(row.Writers)}, err
}
