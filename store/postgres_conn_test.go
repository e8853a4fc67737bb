package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// hole is a network between a store and its PostgreSQL that stops to forward
// anything, without a word to either side.
type hole struct {
	listener net.Listener
	server   string // its Unix socket

	mu    sync.Mutex
	lost  bool // connections that are made are silent from the start
	conns map[*holeConn]struct{}
}

// holeConn is one connection through the hole.
type holeConn struct {
	client, server net.Conn
	silent         chan struct{} // closed: nothing is forwarded any more
	once           sync.Once
}

func (c *holeConn) silence() { c.once.Do(func() { close(c.silent) }) }

// newHole returns a hole and cfg with the way through it.
func newHole(t *testing.T, cfg store.Config) (*hole, store.Config) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	h := &hole{listener: l, server: q.Get("host") + "/.s.PGSQL.5432", conns: map[*holeConn]struct{}{}}
	q.Del("host")
	q.Set("sslmode", "disable")
	q.Set("connect_timeout", "1")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	cfg.Database = u.String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { h.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for c := range h.conns {
			_ = errors.Join(c.client.Close(), c.server.Close())
		}
		h.mu.Unlock()
		running.Wait()
	})
	return h, cfg
}

func (h *hole) serve(client net.Conn) {
	server, err := net.Dial("unix", h.server)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &holeConn{client: client, server: server, silent: make(chan struct{})}
	h.mu.Lock()
	if h.lost {
		c.silence()
	}
	h.conns[c] = struct{}{}
	h.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { c.forward(server, client) })
	both.Go(func() { c.forward(client, server) })
	both.Wait()
	h.mu.Lock()
	delete(h.conns, c)
	h.mu.Unlock()
}

// forward copies until the connection is closed or silent. A silent one stays
// open, and what comes is read and dropped.
func (c *holeConn) forward(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-c.silent:
			if err == nil {
				continue
			}
		default:
			if err == nil {
				_, err = to.Write(buf[:n])
			}
		}
		if err != nil {
			_ = errors.Join(to.Close(), from.Close())
			return
		}
	}
}

// swallow makes the connections that are there silent, and with new also those
// that are made from now on.
func (h *hole) swallow(alsoNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = alsoNew
	for c := range h.conns {
		c.silence()
	}
}

// open lets new connections through.
func (h *hole) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = false
}

// replyTimeout is the timeout for replies of the server in these tests.
const replyTimeout = time.Second

func holeStore(t *testing.T) (*hole, *store.Store, store.Inbox) {
	t.Helper()
	h, cfg := newHole(t, storetest.Config(t, storetest.PostgreSQL))
	cfg.StatementTimeout = replyTimeout
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Received(t, s, in)
	return h, s, in
}

// receive stores a message and reports how long that took.
func receive(t *testing.T, s *store.Store, in store.Inbox) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	return time.Since(begin), err
}

// Connections that the network has lost are abandoned and replaced: a call that
// was under way fails, and the next ones go over new connections.
func TestLostConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	h, s, in := holeStore(t)
	h.swallow(false)
	begin := time.Now()
	for took, err := receive(t, s, in); err != nil; took, err = receive(t, s, in) {
		if time.Since(begin) > tooLong {
			t.Fatalf("no message is stored on a new connection; the last attempt took %v: %v", took, err)
		}
	}
	t.Logf("stored a message %v after the connections were lost", time.Since(begin))
	if err := s.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	for range 20 { // those that were idle are replaced too
		if took, err := receive(t, s, in); err != nil || took > replyTimeout/2 {
			t.Errorf("a message took %v: %v", took, err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// While the server is unreachable, every caller gets an error in time, however many
// there are. They are served as soon as it is reachable again.
func TestLostServerIsReportedToAllCallers(t *testing.T) {
	t.Parallel()
	h, s, in := holeStore(t)
	h.swallow(true)
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			begin := time.Now()
			_, read := s.Inbox(t.Context(), in.AccountID, in.ID)
			if took := time.Since(begin); !errors.Is(read, store.ErrUnavailable) || took > 10*time.Second {
				t.Errorf("a read ended after %v with %v", took, read)
			}
			if took, err := receive(t, s, in); err == nil || took > 15*time.Second {
				t.Errorf("a message ended after %v with %v", took, err)
			}
		})
	}
	calls.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), replyTimeout/2)
	defer cancel()
	if err := s.Healthy(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the store reports that it is healthy: %v", err)
	}
	h.open()
	begin := time.Now()
	waittest.Until(t, "stored a message again", func() bool {
		_, err := receive(t, s, in)
		return err == nil
	})
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("mail was stored %v after the network was back", took)
	}
}

// The hints of other nodes come on a connection of their own, which is replaced
// too.
func TestLostListenerIsReplaced(t *testing.T) {
	t.Parallel()
	direct := storetest.Config(t, storetest.PostgreSQL)
	h, cfg := newHole(t, direct)
	cfg.StatementTimeout = replyTimeout
	s := storetest.OpenConfig(t, cfg)
	db := openRaw(t, direct)
	listeners := func() (pids []int) {
		err := db.Select(&pids, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' ORDER BY pid`)
		if err != nil {
			t.Error(err)
		}
		return pids
	}
	waittest.Until(t, "there is a listener", func() bool { return len(listeners()) == 1 })
	was := listeners()[0]
	h.swallow(false)
	waittest.Until(t, "there is another listener", func() bool {
		for _, pid := range listeners() {
			if pid != was { // numbers of processes start again at the end
				return true
			}
		}
		return false
	})
	_ = s
}

// Every session has limits for what it may hold up, unless the address says
// otherwise.
func TestSessionsHaveLimits(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	check := func(cfg store.Config, want map[string]string) {
		t.Helper()
		s := storetest.OpenConfig(t, cfg)
		for name, want := range want {
			if got, err := store.SessionSetting(t.Context(), s, name); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
	}
	check(cfg, map[string]string{"idle_in_transaction_session_timeout": "5s", "lock_timeout": "5s"})
	cfg.Database += "&lock_timeout=7s&options=" + url.QueryEscape("-c idle_in_transaction_session_timeout=8s")
	check(cfg, map[string]string{"idle_in_transaction_session_timeout": "8s", "lock_timeout": "7s"})
}

// A node that stalls in the middle of a transaction loses the transaction, and gets an
// error that the database is unavailable.
func TestStalledTransactionIsEnded(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	slow := cfg
	slow.Database += "&idle_in_transaction_session_timeout=200ms"
	s, db := storetest.OpenConfig(t, slow), openRaw(t, cfg)
	err := store.StandStill(t.Context(), s, func() {
		waittest.Until(t, "the server has ended the transaction", func() bool {
			var n int
			err := db.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`)
			return err == nil && n == 0
		})
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// While another session holds an inbox, mail for it is refused, and mail for
// others is stored.
func TestOnlyMailForAHeldInboxIsRefused(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	quick := cfg
	quick.Database += "&lock_timeout=500ms"
	s := storetest.OpenConfig(t, quick)
	held := storetest.Inbox(t, s)
	tx := openRaw(t, cfg).MustBegin()
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	tx.MustExec(`SELECT 1 FROM inboxes WHERE seq = $1 FOR UPDATE`, held.Seq)

	ctx, done := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	senders.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if _, err := receive(t, s, held); err == nil {
				t.Error("mail for the held inbox was stored")
			}
			<-tick.C
		}
	})
	var mu sync.Mutex
	stored, longest := 0, time.Duration(0)
	for range 20 {
		in := storetest.Inbox(t, s)
		senders.Go(func() {
			for ctx.Err() == nil {
				took, err := receive(t, s, in)
				if err != nil {
					t.Errorf("mail for another inbox: %v", err)
				}
				mu.Lock()
				stored, longest = stored+1, max(longest, took)
				enough := stored >= 1000
				mu.Unlock()
				if enough {
					done()
				}
			}
		})
	}
	begin := time.Now()
	senders.Wait()
	done()
	t.Logf("%d messages for other inboxes in %v, the longest took %v", stored, time.Since(begin), longest)
	if longest > 10*time.Second {
		t.Errorf("one of them took %v", longest)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "mail for the inbox is stored again", func() bool {
		_, err := receive(t, s, held)
		return err == nil
	})
}
