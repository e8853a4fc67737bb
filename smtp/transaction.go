package smtp

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/postroom/postroom/internal/crashpoint"
)

// transaction is one mail for recipients that one server takes (RFC 5321
// section 3.3).
type transaction struct {
	from string   // reverse-path
	to   []string // forward-paths
	size int64    // bytes of the mail
	utf8 bool     // an address is not ASCII
	// notify asks to be told of success too, by a server that only passes the mail
	// on and can do so.
	notify bool
}

// errNoAnswer means that a server was given all of a mail, and then did not
// answer.
var errNoAnswer = errors.New("no answer to the mail")

// errBody means that the mail could not be read, for no fault of the server's.
var errBody = errors.New("mail cannot be read")

// envelope sends MAIL and RCPT, in one piece when the server offers PIPELINING
// (RFC 2920). When MAIL is refused, to is nil. When the connection breaks, to
// holds what was answered before, and err says why it ends there.
func (p *peer) envelope(tx transaction) (mail response, to []response, err error) {
	p.mails++
	pipelining := p.offers("PIPELINING")
	lines := make([]string, 0, len(tx.to)+1)
	lines = append(lines, p.mailCommand(tx))
	notify := ""
	if tx.notify && p.offers("DSN") {
		notify = " NOTIFY=SUCCESS,FAILURE" // RFC 3461 section 4.1
	}
	for _, rcpt := range tx.to {
		lines = append(lines, "RCPT TO:<"+rcpt+">"+notify)
	}
	if pipelining {
		err = p.send(lines...)
	} else {
		err = p.send(lines[0])
	}
	if err != nil {
		return response{}, nil, err
	}
	crashpoint.Reach(crashpoint.Mail)
	if mail, err = p.receive(p.timeouts.Command); err != nil {
		return response{}, nil, err
	}
	if !mail.positive() {
		// What was sent ahead is answered too, and nobody reads that.
		p.broken = true
		return mail, nil, nil
	}
	for i := range tx.to {
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
			return mail, to, &responseError{r}
		}
	}
	return mail, to, nil
}

func (p *peer) mailCommand(tx transaction) string {
	line := "MAIL FROM:<" + tx.from + ">"
	if p.offers("SIZE") {
		line += fmt.Sprintf(" SIZE=%d", tx.size)
	}
	if tx.utf8 && p.offers("SMTPUTF8") {
		if p.offers("8BITMIME") {
			line += " BODY=8BITMIME"
		}
		line += " SMTPUTF8"
	}
	return line
}

// data sends the mail to the recipients that were accepted and returns the
// answer to it. ready is asked last of all, before the line that makes the
// server take the mail: when it returns an error the mail is not handed over.
func (p *peer) data(mail io.Reader, ready func() error) (response, error) {
	r, err := p.command(p.timeouts.Data, "DATA")
	if err != nil {
		return response{}, err
	}
	if r.code != 354 {
		p.broken = true
		if r.code < 400 {
			return response{}, errGarbled
		}
		return r, nil
	}
	crashpoint.Reach(crashpoint.Data)
	body := &readFault{r: mail}
	dw := dotWriter{w: p.w}
	_, err = io.Copy(&dw, body)
	if body.err != nil {
		p.broken = true
		return response{}, fmt.Errorf("%w: %w", errBody, body.err)
	}
	if err == nil {
		if err := ready(); err != nil {
			p.broken = true
			return response{}, err
		}
		err = dw.end()
	}
	if err != nil {
		p.fail(err)
		return p.lastWords(err)
	}
	crashpoint.Reach(crashpoint.Dot)
	r, err = p.receive(p.timeouts.Done)
	if err != nil {
		return response{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	crashpoint.Reach(crashpoint.Reply)
	p.broken = !r.positive()
	return r, nil
}

// lastWords reads what a server said before it hung up in the middle of a
// mail, as one does that finds it too large.
func (p *peer) lastWords(cause error) (response, error) {
	r, err := p.receive(min(5*time.Second, p.timeouts.Command))
	if err != nil || r.positive() {
		return response{}, cause
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
