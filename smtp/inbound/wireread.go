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

// readLine reads the next command line with its line end, which is part of buf.
// A client may wait long before it says something, but not in the middle of it.
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

// bound is the end of a wait that begins now, and of the transaction at the
// latest.
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

// fill reads more into buf, which has room, until deadline.
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
		err = nil // it comes again
	}
	return w.stopWaiting(err)
}

// fillData is fill for data: the client must keep up the least rate.
func (w *wire) fillData() error {
	cfg := &w.server.cfg
	deadline := earlier(w.bound(cfg.DataTimeout), w.pace.limit(cfg.MinRate, cfg.RateGrace))
	before := w.end - w.start
	err := w.fill(forData, deadline)
	w.pace.bytes += int64(w.end - w.start - before)
	w.earned = earlier(time.Now(), w.pace.paid(cfg.MinRate))
	return err
}

// startWaiting sets the deadline of a read, unless it is too late for one.
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

// stopWaiting says why the read ended, if not well: with err or because we
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

// rest makes the client wait for d. Like every wait it ends early when the place
// is needed.
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
	_ = w.stopWaiting(nil) // the next read says why
}

// asked says whether the client is to be asked to go, before its next command.
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

// pending is what was read and not yet used.
func (w *wire) pending() []byte {
	if w.buf == nil {
		return nil
	}
	return (*w.buf)[w.start:w.end]
}

// lastWords is what a client is told when a read has failed with err; nil when
// there is nobody to tell.
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

// pace is how fast the data of a mail comes in.
type pace struct {
	began time.Time
	bytes int64
}

// start begins to measure, at the first data of a mail.
func (p *pace) start() {
	if p.began.IsZero() {
		p.began = time.Now()
	}
}

// paid is until when the data that came keeps up rate bytes a second.
func (p *pace) paid(rate int) time.Time {
	return p.began.Add(time.Duration(p.bytes) * time.Second / time.Duration(rate))
}

// limit is when more must have come. The first while is free.
func (p *pace) limit(rate int, grace time.Duration) time.Time {
	paid, free := p.paid(rate), p.began.Add(grace)
	if paid.After(free) {
		return paid
	}
	return free
}
