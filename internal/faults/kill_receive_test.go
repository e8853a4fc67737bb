package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestAcceptedMailSurvivesKills kills the service while mail arrives. Every message
// that got 250 is stored once for each of its recipients. Row C1 of docs/testing.md.
func TestAcceptedMailSurvivesKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		r := &receiving{in: in, size: 2 << 10, messages: pick(250, 2000), kills: pick(5, 25)}
		r.run(t)
	})
}

// TestAcceptedLargeMailSurvivesKills does the same with messages in the blob folder.
// Row C1 of docs/testing.md.
func TestAcceptedLargeMailSurvivesKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		r := &receiving{in: in, size: 300 << 10, messages: pick(12, 200), kills: pick(2, 20)}
		r.run(t)
		r.compareRaw(t)
	})
}

// receiving runs mail from four clients to one or both of two inboxes, under kills.
type receiving struct {
	in       *installation
	size     int // of a message, in bytes
	messages int // to be accepted
	kills    int
	refusals bool // mail may be refused for a time

	book  *ledger
	boxes []inbox // two
}

const clients = 4

func (r *receiving) run(t *testing.T) {
	t.Helper()
	r.book = newLedger("received")
	r.in.start()
	r.boxes = r.in.createInboxes("box0", "box1")
	const steps = int(replied) + 1 // of one message
	k := newKiller(t, r.in, steps*r.messages/r.kills)
	enough := func() bool { return r.book.count(accepted) >= r.messages && k.kills >= r.kills }
	k.underKills(t, clients, enough, func() {}, func(ctx context.Context, i int) error { return r.client(ctx, k, i) })
	t.Logf("%d kills: %s", k.kills, r.book)
	r.book.audit(t, r.in.messages("in"), byAddress(r.boxes...), false)
}

// client sends messages until ctx ends. It never retries a message.
func (r *receiving) client(ctx context.Context, k *killer, i int) error {
	for {
		n, err := r.in.await(ctx)
		if err != nil {
			return nil // the test is over
		}
		c, err := dialSMTP(ctx, n.smtp)
		if err != nil {
			continue // killed meanwhile
		}
		c.at = func(step) { k.step() }
		for ctx.Err() == nil && err == nil {
			err = r.sendOne(c, i)
		}
		c.close()
		if no, ok := errors.AsType[*refusal](err); ok && !r.refusals {
			return fmt.Errorf("mail was refused: %w", no)
		}
	}
}

// sendOne sends a message, every fourth one to both inboxes.
func (r *receiving) sendOne(c *smtpClient, i int) error {
	id := r.book.next()
	to := []string{r.boxes[i%2].Address}
	if digit(id)%4 == 0 {
		to = []string{r.boxes[0].Address, r.boxes[1].Address}
	}
	m := newMessage(id, r.size, to...)
	o, err := c.send(m)
	r.book.write(id, entry{outcome: o, to: to, size: len(m.raw)})
	return err
}

// compareRaw downloads all messages and compares them with what was sent.
func (r *receiving) compareRaw(t *testing.T) {
	t.Helper()
	api := r.in.current().caller()
	defer api.close()
	for _, m := range r.in.messages("in") {
		raw, err := api.raw(t.Context(), m.ID)
		if err != nil {
			t.Errorf("%s: %v", m.Subject, err)
			continue
		}
		e := r.book.entries[m.Subject]
		if want := newMessage(m.Subject, r.size, e.to...).raw; !bytes.Equal(raw, want) {
			t.Errorf("%s: the raw message is not what was sent (%d bytes, sent %d)", m.Subject, len(raw), len(want))
		}
	}
}
