package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestC1KillWhileReceiving kills the service while mail comes in. What was
// answered with 250 is stored once, for each of its recipients.
func TestC1KillWhileReceiving(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		r := &receiving{in: in, size: 2 << 10, mails: pick(250, 2000), kills: pick(5, 25)}
		r.run(t)
	})
}

// TestC1KillWhileReceivingLarge does the same with mail that lies in the blob
// folder.
func TestC1KillWhileReceivingLarge(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		r := &receiving{in: in, size: 300 << 10, mails: pick(12, 200), kills: pick(2, 20)}
		r.run(t)
		r.compareRaw(t)
	})
}

// receiving is mail from four clients, to one or both of two inboxes, under
// kills.
type receiving struct {
	in    *install
	size  int // of a mail, in bytes
	mails int // to be accepted
	kills int

	book  *ledger
	boxes []inbox // two
}

const clients = 4

func (r *receiving) run(t *testing.T) {
	t.Helper()
	r.book = newLedger("received")
	r.in.start()
	r.boxes = r.in.createInboxes("box0", "box1")
	const steps = int(answered) + 1 // of one mail
	k := newKiller(t, r.in, steps*r.mails/r.kills)
	enough := func() bool { return r.book.count(accepted) >= r.mails && k.kills >= r.kills }
	k.underKills(t, clients, enough, func() {}, func(ctx context.Context, i int) error { return r.client(ctx, k, i) })
	t.Logf("%d kills: %s", k.kills, r.book)
	r.book.audit(t, r.in.messages("in"), byAddress(r.boxes...), false)
}

// client sends mail until ctx ends. It never tries a mail twice.
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
		if no, ok := errors.AsType[*refusal](err); ok {
			return fmt.Errorf("mail was refused: %w", no)
		}
	}
}

// sendOne sends a mail, every fourth one to both inboxes.
func (r *receiving) sendOne(c *smtpClient, i int) error {
	id := r.book.next()
	to := []string{r.boxes[i%2].Address}
	if digit(id)%4 == 0 {
		to = []string{r.boxes[0].Address, r.boxes[1].Address}
	}
	m := newMail(id, r.size, to...)
	o, err := c.send(m)
	r.book.write(id, entry{outcome: o, to: to, size: len(m.raw)})
	return err
}

// compareRaw downloads all mail and compares it with what was sent.
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
		if want := newMail(m.Subject, r.size, e.to...).raw; !bytes.Equal(raw, want) {
			t.Errorf("%s: the raw mail is not what was sent (%d bytes, sent %d)", m.Subject, len(raw), len(want))
		}
	}
}
