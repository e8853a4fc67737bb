package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// StatementTimeout is how long PostgreSQL may take to respond to a statement, or to send
// the next part of a result, before its connection counts as lost.
const StatementTimeout = 20 * time.Second

// redialAfter is the pause between two attempts to reach a server that is away.
// Until one of them succeeds no one else waits for a connection.
const redialAfter = 250 * time.Millisecond

// sessionSettings are the settings of every session, unless the address says
// otherwise. A node that stops in the middle of a transaction, or that the
// network loses, must not hold its locks for longer than that.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "5s",
	"lock_timeout":                        "5s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "2",
	"tcp_user_timeout":                    "20s",
}

// applySettings adds the session settings that the address does not name.
func applySettings(cfg *pq.Config) {
	if cfg.Runtime == nil {
		cfg.Runtime = map[string]string{}
	}
	for name, value := range sessionSettings {
		if _, said := cfg.Runtime[name]; !said && !strings.Contains(cfg.Options, name) {
			cfg.Runtime[name] = value
		}
	}
}

// openPostgres returns a pool of connections that dialer makes. Without settings
// they have those of the address alone.
func openPostgres(ctx context.Context, address string, dialer *postgresDialer, settings bool) (*sqlx.DB, error) {
	cfg, err := pq.NewConfig(address)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	if settings {
		applySettings(&cfg)
	}
	connector, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	connector.Dialer(dialer)
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("reach PostgreSQL: %w", err), db.Close())
	}
	return db, nil
}

// postgresDialer makes connections on which no read and no write waits for ever.
// The driver sets no deadline while a statement runs, so a connection that the
// network has lost would hang its caller.
type postgresDialer struct {
	within time.Duration // 0: no deadline
	net    net.Dialer

	mu    sync.Mutex
	conns map[*postgresConn]struct{}
	away  map[string]*awayServer // by address
}

// awayServer is a server that could not be reached.
type awayServer struct {
	err     error
	next    time.Time // when to try again
	probing bool      // someone tries
}

func newPostgresDialer(within time.Duration) *postgresDialer {
	return &postgresDialer{
		within: within,
		net: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 2,
		}},
		conns: map[*postgresConn]struct{}{}, away: map[string]*awayServer{},
	}
}

func (d *postgresDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

func (d *postgresDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext. While a server is away one caller at a
// time tries to reach it, and all others get its last error at once.
func (d *postgresDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	probe, err := d.begin(address)
	if err != nil {
		return nil, err
	}
	c, err := d.net.DialContext(ctx, network, address)
	if err != nil {
		d.failed(address, err, errors.Is(ctx.Err(), context.Canceled))
		return nil, err
	}
	conn := &postgresConn{Conn: c, dialer: d, address: address, probe: probe}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[conn] = struct{}{}
	return conn, nil
}

func (d *postgresDialer) begin(address string) (probe bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.away[address]
	if a == nil {
		return false, nil
	}
	if a.probing || time.Now().Before(a.next) {
		return false, a.err
	}
	a.probing = true
	return true, nil
}

// failed notes that a server was not reached. A caller who stopped says nothing
// of it.
func (d *postgresDialer) failed(address string, err error, gaveUp bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if gaveUp {
		if a := d.away[address]; a != nil {
			a.probing = false
		}
		return
	}
	d.away[address] = &awayServer{err: err, next: time.Now().Add(redialAfter)}
}

// established records that a server responds.
func (d *postgresDialer) established(address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.away, address)
}

// lost closes the connections that have been silent for as long as one that is
// lost: they most likely are, and no one else is to wait for them.
func (d *postgresDialer) lost(asked time.Time) {
	d.mu.Lock()
	var silent []*postgresConn
	for c := range d.conns {
		if c.heardBefore(asked) {
			silent = append(silent, c)
		}
	}
	d.mu.Unlock()
	for _, c := range silent {
		_ = c.Close() // nothing is sent on it any more
	}
}

func (d *postgresDialer) forget(c *postgresConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	if a := d.away[c.address]; c.probe && a != nil {
		a.probing = false
	}
}

// postgresConn is a connection whose reads and writes end in time. A read waits
// only for a response: the pools never read an idle connection, and the listener's
// is pinged in shorter intervals.
type postgresConn struct {
	net.Conn
	dialer  *postgresDialer
	address string
	probe   bool // others wait for the outcome of this connection

	mu       sync.Mutex
	deadline time.Time // that the driver has set, for the handshake; zero: none
	ready    bool      // the handshake is done
	asked    time.Time // the last write
	heard    time.Time // the last read
}

func (c *postgresConn) Read(b []byte) (int, error) {
	handshake, err := c.limit(c.Conn.SetReadDeadline)
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.mu.Lock()
		c.heard = time.Now()
		c.mu.Unlock()
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		if handshake {
			c.dialer.failed(c.address, err, false)
		} else {
			c.mu.Lock()
			asked := c.asked
			c.mu.Unlock()
			c.dialer.lost(asked)
		}
	}
	return n, err
}

func (c *postgresConn) Write(b []byte) (int, error) {
	if _, err := c.limit(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.asked = time.Now()
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// limit sets the deadline of what follows.
func (c *postgresConn) limit(set func(time.Time) error) (handshake bool, err error) {
	c.mu.Lock()
	deadline, handshake := c.deadline, !c.ready
	c.mu.Unlock()
	if c.dialer.within > 0 {
		if own := time.Now().Add(c.dialer.within); deadline.IsZero() || own.Before(deadline) {
			deadline = own
		}
	}
	return handshake, set(deadline)
}

// SetDeadline implements net.Conn. The driver sets one before the handshake and
// takes it away after it.
func (c *postgresConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline, c.ready = t, t.IsZero()
	ready := c.ready
	c.mu.Unlock()
	if ready {
		c.dialer.established(c.address)
	}
	return c.Conn.SetDeadline(t)
}

func (c *postgresConn) heardBefore(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready && c.heard.Before(t)
}

func (c *postgresConn) Close() error {
	c.dialer.forget(c)
	return c.Conn.Close()
}
