package smtp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"
)

// fill reads more into buf, which has room, until deadline.
func (w *wire) fill(deadline time.Time) error {
	if err := w.prepare(); err != nil {
		return err
	}
	if err := w.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	return w.receive()
}

// fillCommand is fill for a command: stop ends the wait.
func (w *wire) fillCommand() error {
	if err := w.prepare(); err != nil {
		return err
	}
	if err := w.startWaiting(); err != nil {
		return err
	}
	err := w.receive()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = false
	if err != nil && w.stopping {
		return errStopping
	}
	return err
}

// startWaiting sets the deadline for a command, unless it is too late for one.
func (w *wire) startWaiting() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return errStopping
	}
	w.waiting = true
	return w.conn.SetReadDeadline(time.Now().Add(w.server.cfg.CommandTimeout))
}

// prepare writes the replies and makes room in buf.
func (w *wire) prepare() error {
	w.flush()
	if w.ended.Load() {
		return io.EOF
	}
	if w.buf == nil {
		w.buf = wireBuffers.Get().(*[]byte)
	}
	if w.start > 0 {
		w.end = copy(*w.buf, w.pending())
		w.start = 0
	}
	return nil
}

func (w *wire) receive() error {
	n, err := w.conn.Read((*w.buf)[w.end:])
	w.end += n
	if n > 0 {
		return nil
	}
	return err
}

// pending is what was read and not yet used.
func (w *wire) pending() []byte {
	if w.buf == nil {
		return nil
	}
	return (*w.buf)[w.start:w.end]
}

// readLine returns the next command line with its line end.
func (w *wire) readLine() ([]byte, error) {
	for searched := 0; ; {
		p := w.pending()
		if n := bytes.IndexByte(p[searched:], '\n'); n >= 0 && searched+n < maxCommandLine {
			n += searched + 1
			w.start += n
			return p[:n], nil
		}
		if len(p) >= maxCommandLine {
			return nil, errLineTooLong
		}
		searched = len(p)
		if err := w.fillCommand(); err != nil {
			return nil, err
		}
	}
}

// nextPiece hands out more of a chunk.
func (w *wire) nextPiece() {
	if w.start == w.end {
		if err := w.fill(w.dataDeadline()); err != nil {
			w.ended.Store(true)
			return
		}
	}
	p := w.pending()
	p = p[:min(int64(len(p)), w.chunk)]
	w.start += len(p)
	w.chunk -= int64(len(p))
	w.handed = p
}

// lost ends the session after a read that failed.
func (w *wire) lost(err error) {
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		w.say(421, "4.4.2", "Timeout, closing connection")
	}
	w.ended.Store(true)
}

// dataDeadline is until when the next piece of data must have come.
func (w *wire) dataDeadline() time.Time {
	d := time.Now().Add(w.server.cfg.DataTimeout)
	if w.open && w.deadline.Before(d) {
		return w.deadline
	}
	return d
}

// begin starts a transaction.
func (w *wire) begin() {
	w.open, w.chunks = true, 0
	w.deadline = time.Now().Add(w.server.cfg.TransactionTimeout)
}

// finish ends a transaction.
func (w *wire) finish() { w.open, w.chunks = false, 0 }
