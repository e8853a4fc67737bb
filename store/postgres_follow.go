package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/lib/pq"
)

const (
	postgresChannel = "postroom"
	notifyEvery     = 50 * time.Millisecond
	followEvery     = time.Second
)

// scrub: the server looks after its own files.
func (*postgresDialect) scrub(context.Context) (bool, error) { return true, nil }

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
func (d *postgresDialect) follow(ctx context.Context, log *slog.Logger, look func(context.Context) error) {
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
		go func() { // the listener blocks on who does not read, and ends within a second
			for range l.Notify {
			}
		}()
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	failing := false
	for {
		err := look(ctx)
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

// keepListening asks the listener's connection for a sign of life, more often
// than a read on it may take. A connection that the network has lost is replaced.
func (d *postgresDialect) keepListening(ctx context.Context, l *pq.Listener) {
	tick := time.NewTicker(min(5*time.Second, d.within/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = l.Ping() // the listener sees for itself that the connection is gone
		}
	}
}
