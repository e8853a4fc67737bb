package contract_test

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// gate is a proxy between the program and PostgreSQL. Closing it makes the
// database unreachable for the program.
type gate struct {
	network, target string

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]struct{}
}

// newGate returns a gate to the database at that address, and the address of
// the gate.
func newGate(t *testing.T, database string) (g *gate, through string) {
	t.Helper()
	u, err := url.Parse(database)
	must(t, err)
	g = &gate{network: "tcp", target: u.Host, conns: map[net.Conn]struct{}{}}
	q := u.Query()
	if dir := q.Get("host"); filepath.IsAbs(dir) { // the folder of a Unix socket
		g.network, g.target = "unix", filepath.Join(dir, ".s.PGSQL.5432")
		q.Del("host")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		_ = l.Close() // the listener only
		g.close()
	})
	go g.serve(l)
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return g, u.String()
}

// serve forwards connections until the listener is closed.
func (g *gate) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if g.hold(conn) {
			go g.pass(conn)
		}
	}
}

// hold registers an open connection. A closed gate closes it.
func (g *gate) hold(conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		_ = conn.Close() // the gate is closed
		return false
	}
	g.conns[conn] = struct{}{}
	return true
}

func (g *gate) pass(conn net.Conn) {
	defer g.drop(conn)
	server, err := net.Dial(g.network, g.target)
	if err != nil || !g.hold(server) {
		return
	}
	defer g.drop(server)
	go func() {
		defer g.drop(server)
		_, _ = io.Copy(server, conn) // until either end closes
	}()
	_, _ = io.Copy(conn, server) // as above
}

func (g *gate) drop(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
	_ = conn.Close() // may be closed already
}

// close closes all connections and accepts no new ones.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for conn := range g.conns {
		_ = conn.Close() // the error does not matter
	}
}

// open accepts connections again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}
