package inbound

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/smtp"
)

var wireBuffers = sync.Pool{New: func() any { b := make([]byte, wireBuffer); return &b }}

// wire is the connection of a client: what is read off it and not yet used, and
// the replies that are not yet written. They are kept until there is nothing
// more to answer, so that pipelined commands cost one write. All deadlines are
// set here.
//
// One goroutine uses a wire; stop, shed and abort may be called by others.
type wire struct {
	server *Server
	raw    net.Conn // TCP
	conn   net.Conn // raw, or TLS over it
	ip     netip.Addr
	from   netip.Prefix // what ip counts as, see network

	buf        *[]byte // what was read; nil before the first read
	start, end int     // of what is in buf and not yet used
	out        []byte  // replies not yet written
	lost       bool    // the client takes no replies
	unread     bool    // the client was cut off while it sent

	pace     pace
	deadline time.Time // of the transaction; zero without one
	earned   time.Time // until when the client has earned its place, see conns

	// idleSince is earned while the client is waited for, in nanoseconds of
	// Unix time, and 0 while it is not; inMail says whether it is in a
	// transaction. They are for conns.
	idleSince atomic.Int64
	inMail    atomic.Bool

	mu       sync.Mutex // of what follows, and the deadline of a waiting read
	waiting  waiting
	woken    chan struct{} // closed when a rest is over early; nil outside of one
	stopping bool          // the server shuts down
	shedded  bool          // the place is needed
}

// waiting is what a read waits for.
type waiting int

const (
	notWaiting waiting = iota
	forCommand
	forData
)

func newWire(s *Server, conn net.Conn) *wire {
	ip := remoteIP(conn)
	return &wire{server: s, raw: conn, conn: conn, ip: ip, from: network(ip), earned: time.Now()}
}

// say keeps a reply until the client waits for it.
func (w *wire) say(r *smtp.Reply) {
	w.out = append(r.Append(w.out), '\r', '\n')
	w.flushFull()
}

// sayMore keeps a line of the reply to EHLO that is not its last.
func (w *wire) sayMore(line string) {
	w.out = append(append(append(w.out, "250-"...), line...), smtp.CRLF...)
}

func (w *wire) flushFull() {
	if len(w.out) >= maxPending {
		w.flush()
	}
}

// flush writes the replies. A client that does not take them is given up; so is
// one whose place is needed, when it does not take its last ones soon.
func (w *wire) flush() {
	if len(w.out) > 0 && !w.lost {
		// In this order, so that shed can shorten it. If it fails, the write tells.
		_ = w.raw.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout))
		if w.startWaiting(forData, time.Time{}) != nil {
			_ = w.raw.SetWriteDeadline(time.Now().Add(lingerTime))
		}
		_, err := w.conn.Write(w.out)
		w.lost = err != nil
		_ = w.stopWaiting(nil) // the next wait says why
	}
	w.out = w.out[:0]
}

// stop makes a wait for a command end, and those to come. Data that is coming in
// may come to its end.
func (w *wire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	if w.waiting == forCommand {
		w.wake()
	}
}

// shed makes a wait for the client end, whatever for, and reports whether there
// was one.
func (w *wire) shed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == notWaiting || w.shedded {
		return false
	}
	w.shedded = true
	w.idleSince.Store(0) // its place is given already, so the next one takes another
	w.wake()
	return true
}

// wake ends the read or write that waits. The caller holds mu.
func (w *wire) wake() {
	_ = w.raw.SetDeadline(time.Unix(1, 0)) // fails when the connection is closed, and they with it
	if w.woken != nil {
		close(w.woken)
		w.woken = nil
	}
}

// abort breaks the connection off.
func (w *wire) abort() { _ = w.raw.Close() }

// close writes what is still to be said and hangs up.
func (w *wire) close() {
	w.flush()
	if w.buf != nil {
		wireBuffers.Put(w.buf)
		w.buf, w.start, w.end = nil, 0, 0
	}
	if w.unread && !w.lost {
		w.linger()
	}
	w.server.conns.leave(w) // before the client can know that there is room
	_ = w.conn.Close()
}

// linger lets the client read the last reply, unless its place is needed.
func (w *wire) linger() {
	half, ok := w.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || w.startWaiting(forData, time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, w.conn, lingerBytes) // whatever comes of it, we close
	_ = w.stopWaiting(nil)
}

// encrypt makes the connection a TLS one. Nothing of what came in clear is left:
// not even bytes behind STARTTLS (RFC 3207 section 4.2).
func (w *wire) encrypt(cfg *tls.Config) error {
	w.flush()
	w.start, w.end = 0, 0
	conn := tls.Server(w.raw, cfg)
	if err := w.startWaiting(forCommand, time.Now().Add(w.server.cfg.LineTimeout)); err != nil {
		return err
	}
	_ = w.raw.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout)) // the handshake tells
	if err := w.stopWaiting(conn.HandshakeContext(w.server.ctx)); err != nil {
		w.lost = true // no one would understand our words
		return err
	}
	w.conn = conn
	return nil
}

func (w *wire) encrypted() bool { return w.conn != w.raw }

// begin starts the time of a transaction.
func (w *wire) begin() {
	w.deadline = time.Now().Add(w.server.cfg.TransactionTimeout)
	w.pace = pace{}
	w.inMail.Store(true)
}

// finish ends it.
func (w *wire) finish() {
	w.deadline = time.Time{}
	w.inMail.Store(false)
}

// earn notes that the client has done what it is here for.
func (w *wire) earn() { w.earned = time.Now() }
