package outbound

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/smtp"
)

// Timeouts bound the steps of a transaction. A zero field means the value of RFC
// 5321 section 4.5.3.2, shown below. In any case an attempt ends before its
// lease.
type Timeouts struct {
	Connect time.Duration // 30 s; not in the RFC
	Banner  time.Duration // 5 min
	Command time.Duration // 5 min: EHLO, STARTTLS, AUTH, MAIL, RCPT, RSET
	Data    time.Duration // 2 min: the reply to DATA
	Block   time.Duration // 3 min: each block of data
	Done    time.Duration // 10 min: the reply after the data
}

func (t Timeouts) OrDefault() Timeouts {
	return Timeouts{
		Connect: cmp.Or(t.Connect, 30*time.Second),
		Banner:  cmp.Or(t.Banner, 5*time.Minute),
		Command: cmp.Or(t.Command, 5*time.Minute),
		Data:    cmp.Or(t.Data, 2*time.Minute),
		Block:   cmp.Or(t.Block, 3*time.Minute),
		Done:    cmp.Or(t.Done, 10*time.Minute),
	}
}

// Peer is a connection to a remote server. It is used by one goroutine at a time,
// between attach and detach. After an error its state is unknown, so it is closed
// and not reused.
type Peer struct {
	At       Endpoint
	timeouts Timeouts
	conn     net.Conn
	r        *bufio.Reader
	w        *bufio.Writer
	name     string            // server's name in its greeting
	ext      map[string]string // EHLO keywords, in upper case
	secure   bool
	// Transactions is their number so far.
	Transactions int
	Broken       bool
	TimedOut     bool // a timeout broke the connection

	until time.Time   // deadline of the current attempt
	watch func() bool // stops watching the attempt's context
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

// attach binds the peer to an attempt: when ctx ends, the connection is closed
// and all pending operations fail.
func (p *Peer) attach(ctx context.Context) {
	p.until, _ = ctx.Deadline()
	conn := p.conn
	p.watch = context.AfterFunc(ctx, func() { _ = conn.Close() })
}

// detach ends the binding. It returns false if ctx ended first and the connection
// is closed.
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

// limit sets the deadline of the next step.
func (p *Peer) limit(timeout time.Duration) error {
	end := time.Now().Add(timeout)
	if !p.until.IsZero() && p.until.Before(end) {
		end = p.until
	}
	return p.conn.SetDeadline(end)
}

// timedWriter sets a new deadline for each block.
type timedWriter struct{ p *Peer }

func (t timedWriter) Write(b []byte) (int, error) {
	if err := t.p.limit(t.p.timeouts.Block); err != nil {
		return 0, err
	}
	return t.p.conn.Write(b)
}

// command sends a command and returns the reply, whatever its code.
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
		_, _ = p.w.WriteString(line) // Flush returns the error
		_, _ = p.w.Write(smtp.CRLF)
	}
	if err := p.w.Flush(); err != nil {
		p.fail(err)
		return err
	}
	return nil
}

// fail marks the connection as broken.
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

// MaxTransactions returns how many transactions the connection may have: ours, or fewer
// if the server says so (RFC 9422).
func (p *Peer) MaxTransactions(ours int) int {
	for limit := range strings.FieldsSeq(p.ext["LIMITS"]) {
		if n, is := strings.CutPrefix(strings.ToUpper(limit), "MAILMAX="); is {
			if most, err := strconv.Atoi(n); err == nil && most > 0 {
				return min(ours, most)
			}
		}
	}
	return ours
}

// Reset sends RSET, which ends the previous transaction and checks that the
// server is still there. Its timeout is short, because a server replies to RSET
// quickly.
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

// quit closes the connection, with QUIT if it is not broken.
func (p *Peer) quit() {
	if p.detach() && !p.Broken {
		_, _ = p.command(goodbye, "QUIT") // the reply does not matter
	}
	_ = p.conn.Close()
}
