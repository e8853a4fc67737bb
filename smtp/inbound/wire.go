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

// wire is a client's connection with its input buffer and its unsent replies.
// Replies are buffered while there is input to process, so that pipelined
// commands cause one write. wire sets all deadlines.
//
// A wire is used by one goroutine; only stop, shed and abort may be called by
// others.
type wire struct {
	server *Server
	raw    net.Conn // TCP
	conn   net.Conn // raw, or TLS over it
	ip     netip.Addr
	from   netip.Prefix // the network of ip, see network

	buf        *[]byte // input buffer; nil before the first read
	start, end int     // unprocessed part of buf
	out        []byte  // unsent replies
	lost       bool    // replies can no longer be sent
	unread     bool    // the connection ends while the client is sending
	inData     bool    // if unread: it is sending a message that is refused

	pace     pace
	deadline time.Time // end of the transaction's time limit; zero without one
	earned   time.Time // until when the client has earned its connection, see conns

	// idleSince is the value of earned while the server waits for the client, in
	// Unix nanoseconds, else 0. inMail reports whether the client is in a
	// transaction. conns uses both.
	idleSince atomic.Int64
	inMail    atomic.Bool

	mu       sync.Mutex // guards the fields below and the deadline of a waiting read
	waiting  waiting
	woken    chan struct{} // closed when a pause is cut short; nil outside a pause
	stopping bool          // the server shuts down
	shedded  bool          // the connection is being closed for a new one
}

// waiting is the kind of input that a read waits for.
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

// say buffers a reply until the server next waits for the client.
func (w *wire) say(r *smtp.Reply) {
	w.out = append(r.Append(w.out), '\r', '\n')
	w.flushFull()
}

// sayMore buffers a line of the EHLO reply that is not the last.
func (w *wire) sayMore(line string) {
	w.out = append(append(append(w.out, "250-"...), line...), smtp.CRLF...)
}

func (w *wire) flushFull() {
	if len(w.out) >= maxPending {
		w.flush()
	}
}

// flush writes the buffered replies. If the client does not read them in time,
// the connection is lost.
func (w *wire) flush() {
	if len(w.out) > 0 && !w.lost {
		// Set the deadline first, so that shed can shorten it. If this fails, the
		// write fails too.
		_ = w.raw.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout))
		if w.startWaiting(forData, time.Time{}) != nil {
			_ = w.raw.SetWriteDeadline(time.Now().Add(lingerTime))
		}
		_, err := w.conn.Write(w.out)
		w.lost = err != nil
		_ = w.stopWaiting(nil) // the next wait returns the cause
	}
	w.out = w.out[:0]
}

// stop ends the current and all later waits for a command. Data in progress may
// finish.
func (w *wire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	if w.waiting == forCommand {
		w.wake()
	}
}

// shed ends any wait for the client, and reports whether there was one.
func (w *wire) shed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == notWaiting || w.shedded {
		return false
	}
	w.shedded = true
	w.idleSince.Store(0) // so that the next client sheds another connection
	w.wake()
	return true
}

// wake ends a waiting read or write. The caller holds mu.
func (w *wire) wake() {
	_ = w.raw.SetDeadline(time.Unix(1, 0)) // fails if the connection is closed, which ends them too
	if w.woken != nil {
		close(w.woken)
		w.woken = nil
	}
}

// abort closes the connection at once.
func (w *wire) abort() { _ = w.raw.Close() }

// close flushes the replies and closes the connection.
func (w *wire) close() {
	w.flush()
	if w.buf != nil {
		wireBuffers.Put(w.buf)
		w.buf, w.start, w.end = nil, 0, 0
	}
	if w.unread && !w.lost {
		w.linger()
	}
	w.server.conns.leave(w) // before the client can notice the free slot
	_ = w.conn.Close()
}

// linger gives the client time to read the last reply, unless the connection is
// needed for another client. Most clients read the reply only when they have sent
// the whole message, and closing before that would discard it.
func (w *wire) linger() {
	bytes, d := int64(lingerBytes), lingerTime
	if w.inData {
		bytes, d = w.server.cfg.MaxSize+overrun, lingerDataTime
	}
	half, ok := w.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || w.startWaiting(forCommand, time.Now().Add(d)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, w.conn, bytes) // the connection is closed in any case
	_ = w.stopWaiting(nil)
}

// encrypt starts TLS. It discards all plain-text input, including bytes after
// STARTTLS (RFC 3207 section 4.2).
func (w *wire) encrypt(cfg *tls.Config) error {
	w.flush()
	w.start, w.end = 0, 0
	conn := tls.Server(w.raw, cfg)
	if err := w.startWaiting(forCommand, time.Now().Add(w.server.cfg.LineTimeout)); err != nil {
		return err
	}
	_ = w.raw.SetWriteDeadline(time.Now().Add(w.server.cfg.WriteTimeout)) // the handshake reports the error
	if err := w.stopWaiting(conn.HandshakeContext(w.server.ctx)); err != nil {
		w.lost = true // a reply in plain text would be useless
		return err
	}
	w.conn = conn
	return nil
}

func (w *wire) encrypted() bool { return w.conn != w.raw }

// begin starts the time limit of a transaction.
func (w *wire) begin() {
	w.deadline = time.Now().Add(w.server.cfg.TransactionTimeout)
	w.pace = pace{}
	w.inMail.Store(true)
}

// finish ends the time limit.
func (w *wire) finish() {
	w.deadline = time.Time{}
	w.inMail.Store(false)
}

// earn records that the client has done useful work.
func (w *wire) earn() { w.earned = time.Now() }
