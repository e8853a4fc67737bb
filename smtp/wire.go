package smtp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// wireBuffer is what a connection reads at once: a usual mail and the
	// commands around it.
	wireBuffer = 16 << 10
	// maxCommandLine is the longest command line, in bytes with its line end.
	// RFC 5321 section 4.5.3.1.4 asks for 512, to which extensions add.
	maxCommandLine = 2048
	// maxPending is how many bytes of replies wait for a client that sends
	// commands without looking at them.
	maxPending = 8 << 10
	// lingerBytes and lingerTime bound how long we listen to a client that we
	// have hung up on, so that it reads our last words: closing while it sends
	// would throw them away.
	lingerBytes = 256 << 10
	lingerTime  = time.Second
)

var (
	errLineTooLong = errors.New("command line too long")
	errStopping    = errors.New("server is shutting down")
)

var wireBuffers = sync.Pool{New: func() any { b := make([]byte, wireBuffer); return &b }}

// wire is one connection, as go-smtp sees it. go-smtp reads ahead, takes what a
// timeout left of a line for a command, ends a line wherever it likes and drains
// what it refuses. So it gets its input from here, one checked command line at a
// time, and never more: the message data after DATA is read by readData straight
// from the connection, past go-smtp. Replies are kept until there is nothing
// more to answer, so that pipelined commands cost one write.
//
// One goroutine uses a wire at a time; stop and abort may be called by others.
type wire struct {
	server *Server
	raw    net.Conn // TCP
	conn   net.Conn // raw, or TLS over it
	ip     netip.Addr

	buf        *[]byte // what was read; nil before the first read
	start, end int     // of what is in buf and not yet used
	handed     []byte  // what go-smtp is to read next, a part of buf
	out        []byte  // replies not yet written
	quiet      bool    // drop the greeting, which no one expects after STARTTLS
	ended      atomic.Bool
	unread     bool // the client was cut off while it sent

	watch    commandWatch
	chunk    int64     // bytes of a BDAT chunk that go-smtp is still to read
	chunks   int64     // bytes of all chunks of the transaction
	open     bool      // in a transaction
	deadline time.Time // of the transaction

	upgrade bool // STARTTLS was answered; a new session takes the connection
	closed  bool

	mu       sync.Mutex // of what follows, and the deadline of a waiting read
	waiting  bool       // for a command
	stopping bool
}

// Read gives go-smtp the next command line, or the next piece of a BDAT chunk. A
// chunk that does not come whole ends in an error other than io.EOF, which
// go-smtp would take for its end.
func (w *wire) Read(p []byte) (int, error) {
	if w.quiet {
		w.quiet, w.out = false, w.out[:0]
	}
	for len(w.handed) == 0 {
		switch {
		case w.ended.Load() && w.chunk > 0:
			w.chunk = 0
			return 0, replyCutShort
		case w.ended.Load():
			return 0, io.EOF
		case w.chunk > 0:
			w.nextPiece()
		default:
			w.nextCommand()
		}
	}
	n := copy(p, w.handed)
	w.handed = w.handed[n:]
	return n, nil
}

// Write keeps a reply until the client waits for it.
func (w *wire) Write(p []byte) (int, error) {
	w.out = append(w.out, p...)
	if len(w.out) >= maxPending {
		w.flush()
	}
	return len(p), nil
}

// say answers a command that go-smtp does not get to see.
func (w *wire) say(code int, enhanced, text string) {
	w.out = fmt.Appendf(w.out, "%d %s %s\r\n", code, enhanced, text)
}

// hangUp says why and closes the connection once that is written.
func (w *wire) hangUp(code int, enhanced, text string) {
	w.say(code, enhanced, text)
	w.ended.Store(true)
}

// flush writes the replies. A client that does not take them is given up.
func (w *wire) flush() {
	if len(w.out) == 0 {
		return
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout)) // the write tells
	if _, err := w.conn.Write(w.out); err != nil {
		w.ended.Store(true)
	}
	w.out = w.out[:0]
}

// isStopping says whether commands are refused from now on.
func (w *wire) isStopping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopping
}

// stop asks the client to go: at once when it is idle, else with its next
// command.
func (w *wire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	if w.waiting {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0)) // the connection is closed already
	}
}

// abort breaks the connection off.
func (w *wire) abort() { _ = w.raw.Close() }

// Close writes what is still to be said and hangs up, or hands the connection
// to the session that follows STARTTLS. It may be called twice.
func (w *wire) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.flush()
	w.ended.Store(true)
	w.handed = nil
	if w.buf != nil {
		wireBuffers.Put(w.buf)
		w.buf, w.start, w.end = nil, 0, 0
	}
	if w.upgrade {
		w.server.startTLS(w)
		return nil
	}
	if w.unread {
		w.linger()
	}
	w.server.conns.leave(w) // before the client can know that there is room
	err := w.conn.Close()
	w.server.running.Done()
	return err
}

// linger lets the client read the last reply.
func (w *wire) linger() {
	half, ok := w.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || w.conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, w.conn, lingerBytes) // whatever comes of it, we close
}

// encrypted is the wire of the session that follows STARTTLS. It begins with
// nothing: not even bytes that came behind the command in clear (RFC 3207
// section 4.2).
func (w *wire) encrypted(cfg *tls.Config) *wire {
	return &wire{server: w.server, raw: w.raw, conn: tls.Server(w.raw, cfg), ip: w.ip, quiet: true}
}

// LocalAddr implements net.Conn.
func (w *wire) LocalAddr() net.Addr { return w.conn.LocalAddr() }

// RemoteAddr implements net.Conn.
func (w *wire) RemoteAddr() net.Addr { return w.conn.RemoteAddr() }

// SetDeadline implements net.Conn. The deadlines are the wire's own.
func (w *wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn like SetDeadline.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn like SetDeadline.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
