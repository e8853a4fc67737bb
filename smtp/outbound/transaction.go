package outbound

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/postroom/postroom/internal/crashpoint"
)

// Transaction is one message for recipients on one server (RFC 5321 section 3.3).
type Transaction struct {
	From string   // reverse-path
	To   []string // forward-paths
	Size int64    // size of the message in bytes
	UTF8 bool     // requires SMTPUTF8
	// Notify requests a DSN for success too, from a server that relays the
	// message and supports it.
	Notify bool
}

// ErrNoReply means that a server received the whole message but did not reply.
var ErrNoReply = errors.New("no reply to the message")

// ErrBody means that the message could not be read. The server is not at fault.
var ErrBody = errors.New("mail cannot be read")

// Envelope sends MAIL and RCPT, in one write if the server offers PIPELINING (RFC
// 2920). If MAIL is refused, to is nil. If the connection breaks, to holds the
// replies so far and err is the cause.
func (p *Peer) Envelope(tx Transaction) (mail Response, to []Response, err error) {
	p.Transactions++
	pipelining := p.Offers("PIPELINING")
	lines := make([]string, 0, len(tx.To)+1)
	lines = append(lines, p.mailCommand(tx))
	notify := ""
	if tx.Notify && p.Offers("DSN") {
		notify = " NOTIFY=SUCCESS,FAILURE" // RFC 3461 section 4.1
	}
	for _, rcpt := range tx.To {
		lines = append(lines, "RCPT TO:<"+rcpt+">"+notify)
	}
	if pipelining {
		err = p.send(lines...)
	} else {
		err = p.send(lines[0])
	}
	if err != nil {
		return Response{}, nil, err
	}
	crashpoint.Reach(crashpoint.Mail)
	if mail, err = p.receive(p.timeouts.Command); err != nil {
		return Response{}, nil, err
	}
	if !mail.Positive() {
		// The replies to pipelined commands stay unread.
		p.Broken = true
		return mail, nil, nil
	}
	for i := range tx.To {
		if !pipelining {
			if err := p.send(lines[i+1]); err != nil {
				return mail, to, err
			}
		}
		crashpoint.Reach(crashpoint.Rcpt)
		r, err := p.receive(p.timeouts.Command)
		if err != nil {
			return mail, to, err
		}
		to = append(to, r)
		if r.closing() {
			return mail, to, &ResponseError{r}
		}
	}
	return mail, to, nil
}

func (p *Peer) mailCommand(tx Transaction) string {
	line := "MAIL FROM:<" + tx.From + ">"
	if p.Offers("SIZE") {
		line += fmt.Sprintf(" SIZE=%d", tx.Size)
	}
	if tx.UTF8 && p.Offers("SMTPUTF8") {
		if p.Offers("8BITMIME") {
			line += " BODY=8BITMIME"
		}
		line += " SMTPUTF8"
	}
	return line
}

// Data sends the message to the accepted recipients and returns the reply. It
// calls ready just before the final dot; if ready returns an error, the message
// is not sent.
func (p *Peer) Data(mail io.Reader, ready func() error) (Response, error) {
	r, err := p.command(p.timeouts.Data, "DATA")
	if err != nil {
		return Response{}, err
	}
	if r.Code != 354 {
		p.Broken = true
		if r.Code < 400 {
			return Response{}, errGarbled
		}
		return r, nil
	}
	crashpoint.Reach(crashpoint.Data)
	body := &readFault{r: mail}
	dw := DotWriter{W: p.w}
	_, err = io.Copy(&dw, body)
	if body.err != nil {
		p.Broken = true
		return Response{}, fmt.Errorf("%w: %w", ErrBody, body.err)
	}
	if err == nil {
		if err := ready(); err != nil {
			p.Broken = true
			return Response{}, err
		}
		err = dw.End()
	}
	if err != nil {
		p.fail(err)
		return p.lastWords(err)
	}
	crashpoint.Reach(crashpoint.Dot)
	r, err = p.receive(p.timeouts.Done)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrNoReply, err)
	}
	crashpoint.Reach(crashpoint.Reply)
	p.Broken = !r.Positive()
	return r, nil
}

// lastWords reads the reply of a server that closed the connection during the
// data, for example because the message is too large.
func (p *Peer) lastWords(cause error) (Response, error) {
	r, err := p.receive(min(5*time.Second, p.timeouts.Command))
	if err != nil || r.Positive() {
		return Response{}, cause
	}
	return r, nil
}

// readFault separates the errors of a reader from those of the writer that it is
// copied to.
type readFault struct {
	r   io.Reader
	err error
}

func (f *readFault) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
