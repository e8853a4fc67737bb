package httpserver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Pause describes a request that waits for something.
type Pause struct {
	// Left is the longest time until the request continues.
	Left time.Duration
	// OnWake registers a function that lets the request continue earlier. The
	// function may be called at any time and more than once.
	OnWake func(continueNow func())
	// Ended is called if the request does not continue, with the status of the
	// response: 503 when the server shuts down, and 0 when the client has
	// disconnected.
	Ended func(status int)
	// State is what Resumed returns when the request continues.
	State any
}

// parked is a connection whose request is paused. net/http knows neither of them
// any more: what remains is the socket, the head of the request, and a goroutine
// that notices when the client disconnects.
type parked struct {
	server *Server
	conn   net.Conn
	pause  Pause
	bytes  []byte // that the client has sent: the head, and what followed it
	next   [1]byte

	mu      sync.Mutex
	ended   bool // it continues, or the connection is closed
	stopped bool // the server shuts down
}

type connKey struct{}

// withConn implements http.Server.ConnContext.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*errorConn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// CanPark reports whether Park works: for a request without a body that a Server
// received over HTTP/1.1 without TLS.
func CanPark(w http.ResponseWriter, r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*errorConn)
	return ok && !c.stay && !c.server.draining.Load() && r.ProtoAtLeast(1, 1) && r.ProtoMajor == 1 &&
		r.ContentLength == 0 && len(r.TransferEncoding) == 0 && isHijacker(w)
}

func isHijacker(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = inner.Unwrap()
	}
}

// Park pauses a request, for which CanPark is true and no response has begun. The
// handler must return then. When the pause ends the server handles the request
// again from its start, as if the client had sent it again.
func Park(w http.ResponseWriter, r *http.Request, p Pause) error {
	c, _ := r.Context().Value(connKey{}).(*errorConn)
	s := c.server
	s.conns.change(http.StateNew) // it counts as open until the pause ends
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.conns.change(http.StateClosed)
		return err
	}
	held := &parked{server: s, conn: c.Conn, pause: p, bytes: headOf(r)}
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ := buffered.Reader.Peek(n)
		held.bytes = append(held.bytes, early...)
	}
	held.bytes = append(held.bytes, c.rest...)
	_ = conn.SetReadDeadline(time.Now().Add(p.Left)) // fails only on a closed connection
	if !s.parked.add(held) {
		held.stopped = true
		held.interrupt()
	}
	p.OnWake(held.interrupt)
	go held.wait()
	return nil
}

// headOf returns the request line and the headers.
func headOf(r *http.Request) []byte {
	var b bytes.Buffer
	b.WriteString(r.Method + " " + r.RequestURI + " HTTP/1.1\r\nHost: " + r.Host + "\r\n")
	_ = r.Header.Write(&b) // a buffer does not fail
	b.WriteString("\r\n")
	return bytes.Clone(b.Bytes())
}

// wait waits until the pause ends or the client disconnects.
func (p *parked) wait() {
	n, err := p.conn.Read(p.next[:])
	p.mu.Lock()
	p.ended = true
	stopped := p.stopped
	p.mu.Unlock()
	p.server.parked.remove(p)
	defer p.server.conns.change(http.StateClosed)
	_ = p.conn.SetReadDeadline(time.Time{}) // as above
	c := &errorConn{Conn: p.conn, server: p.server, rest: append(p.bytes, p.next[:n]...), resumed: p.pause.State, stay: n > 0}
	switch {
	case stopped:
	case n == 0 && !isTimeout(err):
		_ = p.conn.Close() // the client has disconnected
		p.pause.Ended(0)
		return
	case p.server.again.give(c):
		return
	}
	c.respond(http.StatusServiceUnavailable, "the server is shutting down: send the request again")
	_ = p.conn.Close()
	p.pause.Ended(http.StatusServiceUnavailable)
}

// interrupt ends the pause.
func (p *parked) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // in the past
	}
}

// stop ends the pause because the server shuts down.
func (p *parked) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.interrupt()
}

// Resumed returns the State of the pause if this is the request that was paused, and
// nil otherwise.
func Resumed(r *http.Request) any {
	c, ok := r.Context().Value(connKey{}).(*errorConn)
	if !ok {
		return nil
	}
	state := c.resumed
	c.resumed = nil
	return state
}

// A request that is parked no longer needs its deep stack and its buffers, but only
// garbage collections free them. A server whose requests all wait would not collect for
// minutes, so many new ones start a collection.
const (
	collectEvery = 1000 // more parked connections than at the last collection
	// collectAfter is the delay of a collection. Requests that arrive together are parked
	// by then.
	collectAfter = time.Second
)

// parkedConns are the connections that are parked.
type parkedConns struct {
	mu         sync.Mutex
	stopped    bool
	open       map[*parked]struct{}
	collected  int  // how many were open at the last collection, or the fewest since then
	collecting bool // a collection is due or running
}

// add returns false if the server shuts down.
func (c *parkedConns) add(p *parked) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	if c.open == nil {
		c.open = map[*parked]struct{}{}
	}
	c.open[p] = struct{}{}
	if len(c.open) >= c.collected+collectEvery && !c.collecting {
		c.collecting = true
		time.AfterFunc(collectAfter, c.collect)
	}
	return true
}

func (c *parkedConns) remove(p *parked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, p)
	c.collected = min(c.collected, len(c.open))
}

// collect frees the memory that parked requests no longer need. Each collection halves a
// stack that is mostly empty, so there are several.
func (c *parkedConns) collect() {
	c.mu.Lock()
	n := len(c.open)
	c.mu.Unlock()
	for range 4 {
		runtime.GC()
	}
	debug.FreeOSMemory() // once more, and returns it to the system
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collecting, c.collected = false, n
	if len(c.open) > n+collectEvery/10 { // many were parked meanwhile
		c.collecting = true
		time.AfterFunc(collectAfter, c.collect)
	}
}

func (c *parkedConns) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for p := range c.open {
		p.stop()
	}
}

// againListener is a net.Listener that accepts connections whose pause ended.
type againListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func newAgainListener() *againListener {
	return &againListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// give returns false if the listener is closed.
func (l *againListener) give(c net.Conn) bool {
	select {
	case l.conns <- c:
		return true
	case <-l.closed:
		return false
	}
}

// Accept implements net.Listener.
func (l *againListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *againListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *againListener) Addr() net.Addr { return l.addr }
