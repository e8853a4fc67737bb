package faults_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

const (
	small  = 2 << 10   // stored in the row
	large  = 300 << 10 // stored in the blob storage
	larger = 2 << 20   // the request is buffered in a file too
)

// pair is an installation with two inboxes. One sends over the API, and the other
// receives, from the first and over SMTP. The ledgers contain what was promised.
type pair struct {
	t        *testing.T
	in       *installation
	from, to inbox

	received, sent *ledger
	said           string // the text of the last refusal or response
}

// newPair serves the installation and creates the inboxes.
func newPair(in *installation) *pair {
	in.t.Helper()
	in.start()
	boxes := in.createInboxes("from", "to")
	return &pair{t: in.t, in: in, from: boxes[0], to: boxes[1], received: newLedger("received"), sent: newLedger("sent")}
}

// want sends a message of that size over SMTP and one over the API, and checks the
// reply code and the status.
func (p *pair) want(size, smtp, http int) {
	p.t.Helper()
	if got := p.deliver(size); got != smtp {
		p.t.Errorf("a message of %d bytes got %d, want %d", size, got, smtp)
	}
	if got := p.send(size); got != http {
		p.t.Errorf("a call with a message of %d bytes got %d, want %d", size, got, http)
	}
}

// deliver sends a message over SMTP and returns the reply code.
func (p *pair) deliver(size int) int {
	p.t.Helper()
	c, err := dialSMTP(p.t.Context(), p.in.current().smtp)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.close()
	m := newMessage(p.received.next(), size, p.to.Address)
	o, err := c.send(m)
	p.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	if no, ok := errors.AsType[*refusal](err); ok {
		p.said = no.text
		return no.code
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 250
}

// send sends a message over the API and returns the status.
func (p *pair) send(size int) int {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	id := p.sent.next()
	file := base64.StdEncoding.EncodeToString(newMessage(id, size).raw)
	a, err := c.do(p.t.Context(), http.MethodPost, "/v1/inboxes/"+p.from.ID+"/messages", map[string]any{
		"to": p.to.Address, "subject": id, "text": bodyMark(id), "attachments": []any{map[string]string{"filename": "a.txt", "content": file}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.said = string(a.body)
	e := entry{outcome: refused, to: []string{p.to.Address}}
	if a.status == http.StatusCreated {
		e.outcome = accepted
	}
	p.sent.write(id, e)
	return a.status
}

// recover waits until messages are accepted again.
func (p *pair) recover() {
	p.t.Helper()
	began := time.Now()
	waittest.Until(p.t, "mail is accepted again", func() bool {
		return p.deliver(large) == 250 && p.send(large) == http.StatusCreated
	})
	if took := time.Since(began); took > mostToRecover {
		p.t.Errorf("it took %v to recover", took)
	}
}

// audit restarts the service and checks for everything that was promised.
func (p *pair) audit() {
	p.t.Helper()
	p.in.stop()
	p.in.hurry(p.t.Context())
	p.in.start()
	p.in.auditBoth(p.sent, p.received, p.to, false)
}
