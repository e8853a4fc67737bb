package outbound

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/smtp"
)

// Timeouts are how long a server may take for each step of a transaction. A
// zero field means what RFC 5321 section 4.5.3.2 asks for, which the comments
// give. Whatever they say, an attempt ends before its lease does.
type Timeouts struct {
	Connect time.Duration // 30 s; the RFC leaves it open
	Banner  time.Duration // 5 min
	Command time.Duration // 5 min: EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET
	Data    time.Duration // 2 min: the answer to DATA
	Block   time.Duration // 3 min: each piece of the mail
	Done    time.Duration // 10 min: the answer after the mail
}

func (t Timeouts) OrDefault() Timeouts {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Connect, 30 * time.Second},
		{&t.Banner, 5 * time.Minute},
		{&t.Command, 5 * time.Minute},
		{&t.Data, 2 * time.Minute},
		{&t.Block, 3 * time.Minute},
		{&t.Done, 10 * time.Minute},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return t
}

// Peer is a connection to a server that takes mail from us. It is used by one
// goroutine at a time, between attach and detach. After an error it is broken:
// nobody knows what the server still believes, so it is closed and never used
// again.
type Peer struct {
	At       Endpoint
	timeouts Timeouts
	conn     net.Conn
	r        *bufio.Reader
	w        *bufio.Writer
	name     string            // what it calls itself
	ext      map[string]string // what EHLO offered, in upper case
	secure   bool
	Mails    int // transactions so far
	Broken   bool
	TimedOut bool // and that is why it is broken

	until time.Time   // when the attempt that uses it ends
	watch func() bool // ends the watch over the attempt's context
}

func newPeer(at Endpoint, conn net.Conn, t Timeouts) *Peer {
	p := &Peer{At: at, timeouts: t}
	p.use(conn)
	return p
}

func (p *Peer) use(conn net.Conn) {
	p.conn = conn
	p.r = bufio.NewReaderSize(conn, maxResponseLine)
	p.w = bufio.NewWriterSize(timedWriter{p}, 8<<10)
}

// attach lends the peer to an attempt: when ctx ends the connection is closed,
// and whatever waits on it fails.
func (p *Peer) attach(ctx context.Context) {
	p.until, _ = ctx.Deadline()
	conn := p.conn
	p.watch = context.AfterFunc(ctx, func() { _ = conn.Close() })
}

// detach ends the loan. It returns false when the attempt's end came first and
// closed the connection.
func (p *Peer) detach() bool {
	if p.watch == nil {
		return true
	}
	open := p.watch()
	p.watch = nil
	if !open {
		p.Broken = true
	}
	p.until = time.Time{}
	return open
}

// limit sets how long the next step may take.
func (p *Peer) limit(timeout time.Duration) error {
	end := time.Now().Add(timeout)
	if !p.until.IsZero() && p.until.Before(end) {
		end = p.until
	}
	return p.conn.SetDeadline(end)
}

// timedWriter gives each piece that is sent its own time.
type timedWriter struct{ p *Peer }

func (t timedWriter) Write(b []byte) (int, error) {
	if err := t.p.limit(t.p.timeouts.Block); err != nil {
		return 0, err
	}
	return t.p.conn.Write(b)
}

// command sends a command and returns the answer, whatever it is.
func (p *Peer) command(timeout time.Duration, line string) (Response, error) {
	if err := p.send(line); err != nil {
		return Response{}, err
	}
	return p.receive(timeout)
}

func (p *Peer) send(lines ...string) error {
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			p.Broken = true
			return errors.New("line end inside a command")
		}
		_, _ = p.w.WriteString(line) // Flush has the error
		_, _ = p.w.Write(smtp.CRLF)
	}
	if err := p.w.Flush(); err != nil {
		p.fail(err)
		return err
	}
	return nil
}

// fail notes that the connection is of no more use.
func (p *Peer) fail(err error) {
	p.Broken = true
	if isTimeout(err) {
		p.TimedOut = true
	}
}

func (p *Peer) receive(timeout time.Duration) (Response, error) {
	err := p.limit(timeout)
	var r Response
	if err == nil {
		r, err = readResponse(p.r)
	}
	if err != nil {
		p.fail(err)
		return Response{}, err
	}
	if r.closing() {
		p.Broken = true
	}
	return r, nil
}

func (p *Peer) Offers(extension string) bool {
	_, ok := p.ext[extension]
	return ok
}

// MostMails is how many transactions the connection may have: ours, or fewer when
// the server says so (RFC 9422).
func (p *Peer) MostMails(ours int) int {
	for limit := range strings.FieldsSeq(p.ext["LIMITS"]) {
		if n, is := strings.CutPrefix(strings.ToUpper(limit), "MAILMAX="); is {
			if most, err := strconv.Atoi(n); err == nil && most > 0 {
				return min(ours, most)
			}
		}
	}
	return ours
}

// Reset ends the transaction before, and finds out whether the server is still
// there: one that is has nothing to think about, and answers soon.
func (p *Peer) Reset() error {
	r, err := p.command(min(p.timeouts.Connect, p.timeouts.Command), "RSET")
	if err != nil {
		return err
	}
	if r.Code != 250 {
		return p.stop(r)
	}
	return nil
}

// quit closes the connection, politely when it is in order.
func (p *Peer) quit() {
	if p.detach() && !p.Broken {
		_, _ = p.command(goodbye, "QUIT") // nothing hangs on the answer
	}
	_ = p.conn.Close()
}
