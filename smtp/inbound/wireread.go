package inbound

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/postroom/postroom/smtp"
)

var (
	errLineTooLong = errors.New("command line too long")
	errStopping    = errors.New("the server is shutting down")
	errShed        = errors.New("the place is needed")
)

// readLine reads the next command line with its line end. The result is part of
// buf. The client may take long to start a line, but not to finish it.
func (w *wire) readLine() ([]byte, error) {
	if err := w.asked(); err != nil {
		return nil, err
	}
	deadline := w.bound(w.server.cfg.CommandTimeout)
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
		if searched == 0 && len(p) > 0 {
			deadline = earlier(deadline, w.bound(w.server.cfg.LineTimeout))
		}
		searched = len(p)
		if err := w.fill(forCommand, deadline); err != nil {
			return nil, err
		}
	}
}

// bound returns the end of a wait that starts now, at the latest the end of the
// transaction.
func (w *wire) bound(d time.Duration) time.Time {
	end := time.Now().Add(d)
	if w.deadline.IsZero() {
		return end
	}
	return earlier(end, w.deadline)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// fill reads more data into buf, which must have room, until deadline.
func (w *wire) fill(what waiting, deadline time.Time) error {
	w.flush()
	if w.lost {
		return io.EOF
	}
	if w.buf == nil {
		w.buf = wireBuffers.Get().(*[]byte)
	}
	if w.start > 0 {
		w.end = copy(*w.buf, w.pending())
		w.start = 0
	}
	if err := w.startWaiting(what, deadline); err != nil {
		return err
	}
	n, err := w.conn.Read((*w.buf)[w.end:])
	w.end += n
	if n > 0 {
		err = nil // the next read returns it again
	}
	return w.stopWaiting(err)
}

// fillData is fill for message data, with the minimum rate.
func (w *wire) fillData() error {
	cfg := &w.server.cfg
	deadline := earlier(w.bound(cfg.DataTimeout), w.pace.limit(cfg.MinRate, cfg.RateGrace))
	before := w.end - w.start
	err := w.fill(forData, deadline)
	w.pace.bytes += int64(w.end - w.start - before)
	w.earned = earlier(time.Now(), w.pace.paid(cfg.MinRate))
	return err
}

// startWaiting sets the deadline of a read, unless the server stops or sheds the
// connection.
func (w *wire) startWaiting(what waiting, deadline time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.interrupted(what); err != nil {
		return err
	}
	w.waiting = what
	w.idleSince.Store(w.earned.UnixNano())
	return w.raw.SetReadDeadline(deadline)
}

// stopWaiting returns why the read ended: err, or the reason for which the server
// ended it.
func (w *wire) stopWaiting(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idleSince.Store(0)
	what := w.waiting
	w.waiting, w.woken = notWaiting, nil
	if err == nil {
		return nil
	}
	if why := w.interrupted(what); why != nil {
		return why
	}
	return err
}

// rest delays the client by d. It ends early if the connection is shed.
func (w *wire) rest(d time.Duration) {
	w.flush()
	t := time.NewTimer(d)
	defer t.Stop()
	w.mu.Lock()
	if w.interrupted(forCommand) != nil {
		w.mu.Unlock()
		return
	}
	w.waiting, w.woken = forCommand, make(chan struct{})
	woken := w.woken
	w.idleSince.Store(w.earned.UnixNano())
	w.mu.Unlock()
	select {
	case <-t.C:
	case <-woken:
	}
	_ = w.stopWaiting(nil) // the next read returns the cause
}

// asked reports, as an error, that the client should disconnect before its next
// command.
func (w *wire) asked() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.interrupted(forCommand)
}

func (w *wire) interrupted(what waiting) error {
	switch {
	case w.shedded:
		return errShed
	case w.stopping && what == forCommand:
		return errStopping
	}
	return nil
}

// pending returns the unprocessed input.
func (w *wire) pending() []byte {
	if w.buf == nil {
		return nil
	}
	return (*w.buf)[w.start:w.end]
}

// lastWords returns the last reply after a read error, or nil if the client is
// gone.
func lastWords(err error) *smtp.Reply {
	var netErr net.Error
	switch {
	case errors.Is(err, errStopping):
		return replyShuttingDown
	case errors.Is(err, errShed):
		return replyMakeRoom
	case errors.As(err, &netErr) && netErr.Timeout():
		return replyTimeout
	}
	return nil
}

// pace measures the data rate of a message.
type pace struct {
	began time.Time
	bytes int64
}

// start starts the measurement at the first data of a message.
func (p *pace) start() {
	if p.began.IsZero() {
		p.began = time.Now()
	}
}

// paid returns until when the received data satisfies the rate, in bytes per
// second.
func (p *pace) paid(rate int) time.Time {
	return p.began.Add(time.Duration(p.bytes) * time.Second / time.Duration(rate))
}

// limit returns when more data must have arrived. The rate does not apply during
// grace.
func (p *pace) limit(rate int, grace time.Duration) time.Time {
	paid, free := p.paid(rate), p.began.Add(grace)
	if paid.After(free) {
		return paid
	}
	return free
}
