package smtp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// conns are the connections of a server, counted in all and for each address.
type conns struct {
	max, perIP int

	mu       sync.Mutex
	open     map[*wire]struct{}
	byIP     map[netip.Addr]int
	doors    []net.Listener
	stopping bool
}

func (c *conns) init(maxConns, perIP int) {
	c.max, c.perIP = maxConns, perIP
	c.open, c.byIP = map[*wire]struct{}{}, map[netip.Addr]int{}
}

// enter adds w, or says why not.
func (c *conns) enter(w *wire) (refusal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopping:
		return "421 4.3.2 Shutting down, try again later\r\n"
	case len(c.open) >= c.max:
		return "421 4.7.0 Too many connections, try again later\r\n"
	case c.byIP[w.ip] >= c.perIP:
		return "421 4.7.0 Too many connections from your address, try again later\r\n"
	}
	c.open[w] = struct{}{}
	c.byIP[w.ip]++
	w.server.running.Add(1)
	return ""
}

func (c *conns) leave(w *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, w)
	if c.byIP[w.ip]--; c.byIP[w.ip] == 0 {
		delete(c.byIP, w.ip)
	}
}

// replace puts next into the place of w.
func (c *conns) replace(w, next *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, w)
	c.open[next] = struct{}{}
	if c.stopping {
		next.stop()
	}
}

// listen notes a listener that stop is to close; false when it is too late.
func (c *conns) listen(l net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.doors = append(c.doors, l)
	}
	return !c.stopping
}

// stop lets no more in and asks those inside to go.
func (c *conns) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if !c.stopping {
		for _, l := range c.doors {
			errs = append(errs, l.Close())
		}
	}
	c.stopping = true
	for w := range c.open {
		w.stop()
	}
	return errors.Join(errs...)
}

// abort breaks all connections off.
func (c *conns) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.open {
		w.abort()
	}
}

// listener gives go-smtp those connections that may come in.
type listener struct {
	net.Listener
	server *Server
}

// refuseTimeout bounds the words to a client that is turned away. They fit the
// buffer of the socket, so that it never waits.
const refuseTimeout = time.Second

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		w := &wire{server: l.server, raw: conn, conn: conn, ip: remoteIP(conn)}
		refusal := l.server.conns.enter(w)
		if refusal == "" {
			return w, nil
		}
		if conn.SetWriteDeadline(time.Now().Add(refuseTimeout)) == nil {
			_, _ = conn.Write([]byte(refusal)) // it goes either way
		}
		_ = conn.Close()
	}
}

func remoteIP(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// startTLS gives the connection of w to a new, encrypted session.
func (s *Server) startTLS(w *wire) {
	next := w.encrypted(s.cfg.TLS)
	s.conns.replace(w, next)
	if !s.upgrades.give(next) {
		s.conns.leave(next)
		next.abort()
		s.running.Done()
	}
}

// handover is a listener whose connections come from STARTTLS.
type handover struct {
	c    chan net.Conn
	done chan struct{}
	once sync.Once
}

func newHandover() *handover { return &handover{c: make(chan net.Conn), done: make(chan struct{})} }

// give hands c over, unless the server is shut down.
func (h *handover) give(c net.Conn) bool {
	select {
	case h.c <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.c:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return &net.TCPAddr{} }
