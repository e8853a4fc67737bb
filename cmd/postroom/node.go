package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/postroom/postroom/internal/testclock"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

// node is one serving process: the API, the SMTP server and their workers, on one
// store.
type node struct {
	cfg Config
	out io.Writer // for output at the start, including the first key
	log *slog.Logger
	now func() time.Time

	ready       chan struct{} // closed when the node serves and the addresses are set
	httpAddr    net.Addr
	httpsAddr   net.Addr // nil without HTTPS
	smtpAddr    net.Addr
	submitAddr  net.Addr // nil without submission by STARTTLS
	submitsAddr net.Addr // nil without submission by TLS
	metricsAddr net.Addr // nil without metrics
}

func newNode(cfg Config, out io.Writer, log *slog.Logger) *node {
	return &node{cfg: cfg, out: out, log: log, now: testclock.Now, ready: make(chan struct{})}
}

// Run serves until ctx ends or a part fails, then stops everything. It returns
// nil if ctx ended and every part stopped cleanly.
func (n *node) Run(ctx context.Context) (err error) {
	mine, err := n.cfg.claim()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mine.release()) }()
	// Listen before creating the first key: a node that cannot serve must not
	// create one.
	doors, err := n.cfg.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, doors.close()) }()
	s, in, err := n.openStore(ctx)
	if err != nil && errors.Is(err, store.ErrUnavailable) && ctx.Err() != nil {
		return nil // stopped by a signal while waiting for the database
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(s)) }()
	n.now = s.Now // the database server's time, which all nodes share
	if err := n.tellOfHeld(ctx, s); err != nil {
		return err
	}
	stopping := make(chan struct{})
	parts, err := n.assemble(ctx, s, in, doors, mine.temp, stopping)
	if err != nil {
		return err
	}
	patience := stopTimeout
	if n.cfg.dev {
		patience = devStopTimeout
	}
	err = runParts(ctx, parts, patience, func() error {
		context.AfterFunc(ctx, func() {
			n.log.InfoContext(ctx, "shutting down", "reason", context.Cause(ctx).Error())
		})
		n.httpAddr, n.smtpAddr = doors.http.Addr(), doors.smtp.Addr()
		n.httpsAddr, n.metricsAddr = addrOf(doors.https), addrOf(doors.metrics)
		n.submitAddr, n.submitsAddr = addrOf(doors.submission), addrOf(doors.submissions)
		close(n.ready)
		if err := n.announce(in); err != nil {
			return err
		}
		n.logReady(ctx)
		return nil
	})
	return err
}

// openStore migrates the schema, opens the store and, at the first start, creates
// the account and key.
func (n *node) openStore(ctx context.Context) (*store.Store, install, error) {
	in, err := n.cfg.findSecret()
	if err != nil {
		return nil, in, err
	}
	var s *store.Store
	err = n.waitForServer(ctx, func() error {
		if n.cfg.Migrate {
			steps, err := n.cfg.migrate(ctx, n.log)
			if err != nil {
				return err
			}
			if steps > 0 {
				n.log.InfoContext(ctx, "the database schema is up to date", "steps", steps)
			}
		}
		s, err = n.cfg.openToServe(ctx, in.keys, n.now, n.log)
		return err
	})
	if err != nil {
		return nil, in, err
	}
	err = n.cfg.begin(ctx, s, &in, n.log)
	if err == nil {
		err = n.cfg.prove(ctx, s)
	}
	if err != nil {
		return nil, in, errors.Join(err, s.Close())
	}
	return s, in, nil
}

// sayWaitEvery is how often the log repeats that the node waits for its database.
const sayWaitEvery = 10 * time.Second

// waitForServer retries do while the PostgreSQL server is unreachable, for
// example after a restart of all machines, until ctx ends.
func (n *node) waitForServer(ctx context.Context, do func() error) error {
	var said time.Time
	for {
		err := do()
		if err == nil || !n.cfg.Database.postgres() || !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if time.Since(said) >= sayWaitEvery {
			n.log.WarnContext(ctx, "waiting for the database", "error", err)
			said = time.Now()
		}
		if !work.Pause(ctx, time.Second, nil) {
			return err
		}
	}
}

// closeStore closes the store. It stops waiting after closeTimeout if the
// database hangs.
func closeStore(s *store.Store) error {
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTimeout):
		return errors.New("the database did not close in time")
	}
}
