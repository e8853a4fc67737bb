package outbound

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/postroom/postroom/internal/crashpoint"
)

// Transaction is one mail for recipients that one server takes (RFC 5321
// section 3.3).
type Transaction struct {
	From string   // reverse-path
	To   []string // forward-paths
	Size int64    // bytes of the mail
	UTF8 bool     // an address is not ASCII
	// notify asks to be told of success too, by a server that only passes the mail
	// on and can do so.
	Notify bool
}

// ErrNoAnswer means that a server was given all of a mail, and then did not
// answer.
var ErrNoAnswer = errors.New("no answer to the mail")

// ErrBody means that the mail could not be read, for no fault of the server's.
var ErrBody = errors.New("mail cannot be read")

// Envelope sends MAIL and RCPT, in one piece when the server offers PIPELINING
// (RFC 2920). When MAIL is refused, to is nil. When the connection breaks, to
// holds what was answered before, and err says why it ends there.
func (p *Peer) Envelope(tx Transaction) (mail Response, to []Response, err error) {
	p.Mails++
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
		// What was sent ahead is answered too, and nobody reads that.
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

// Data sends the mail to the recipients that were accepted and returns the
// answer to it. ready is asked last of all, before the line that makes the
// server take the mail: when it returns an error the mail is not handed over.
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
		return Response{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	crashpoint.Reach(crashpoint.Reply)
	p.Broken = !r.Positive()
	return r, nil
}

// lastWords reads what a server said before it hung up in the middle of a
// mail, as one does that finds it too large.
func (p *Peer) lastWords(cause error) (Response, error) {
	r, err := p.receive(min(5*time.Second, p.timeouts.Command))
	if err != nil || r.Positive() {
		return Response{}, cause
	}
	return r, nil
}

// readFault tells the errors of a reader from those of whom it is copied to.
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
