package faults_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"
)

const (
	small  = 2 << 10   // lies in the row
	large  = 300 << 10 // lies in the blob storage
	larger = 2 << 20   // and its request in a file before that
)

// pair is an install with two inboxes: one sends, over the API, and the other
// receives, over SMTP too. What was promised is in the ledgers.
type pair struct {
	t        *testing.T
	in       *install
	from, to inbox

	received, sent *ledger
}

// newPair serves the install.
func newPair(in *install) *pair {
	in.t.Helper()
	in.start()
	boxes := in.createInboxes("from", "to")
	return &pair{in.t, in, boxes[0], boxes[1], newLedger("received"), newLedger("sent")}
}

// want sends a mail of that size over SMTP and one over the API, which must be
// answered so.
func (p *pair) want(size, smtp, http int) {
	p.t.Helper()
	if got := p.deliver(size); got != smtp {
		p.t.Errorf("a mail of %d bytes is answered with %d, want %d", size, got, smtp)
	}
	if got := p.send(size); got != http {
		p.t.Errorf("a call with a mail of %d bytes is answered with %d, want %d", size, got, http)
	}
}

// deliver sends a mail over SMTP and returns the code of the answer.
func (p *pair) deliver(size int) int {
	p.t.Helper()
	c, err := dialSMTP(p.t.Context(), p.in.current().smtp)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.close()
	m := newMail(p.received.next(), size, p.to.Address)
	o, err := c.send(m)
	p.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
	if no, ok := errors.AsType[*refusal](err); ok {
		return no.code
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 250
}

// send sends a mail over the API and returns the status of the answer.
func (p *pair) send(size int) int {
	p.t.Helper()
	c := p.in.current().caller()
	defer c.close()
	id := p.sent.next()
	file := base64.StdEncoding.EncodeToString(newMail(id, size).raw)
	a, err := c.do(p.t.Context(), http.MethodPost, "/v1/inboxes/"+p.from.ID+"/messages", map[string]any{
		"to": p.to.Address, "subject": id, "text": bodyMark(id), "attachments": []any{map[string]string{"filename": "a.txt", "content": file}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	e := entry{outcome: refused, to: []string{p.to.Address}}
	if a.status == http.StatusCreated {
		e.outcome = accepted
	}
	p.sent.write(id, e)
	return a.status
}

// recover waits until mail is taken again.
func (p *pair) recover() {
	p.t.Helper()
	began := time.Now()
	eventually(p.t, "mail is taken again", func() bool {
		return p.deliver(large) == 250 && p.send(large) == http.StatusCreated
	})
	if took := time.Since(began); took > mostToRecover {
		p.t.Errorf("it took %v to go on", took)
	}
}

// audit looks for all that was promised, by a service that was started again.
func (p *pair) audit() {
	p.t.Helper()
	p.in.stop()
	p.in.hurry(p.t.Context())
	p.in.start()
	p.in.auditBoth(p.sent, p.received, p.to, false)
}
