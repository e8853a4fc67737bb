package faults_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// TestSentMailArrivesOnceUnderKills kills the service while the API accepts messages
// from one inbox to others and the queue delivers them. A message whose call got 201
// arrives once at each of its recipients. A call with an idempotency key, repeated
// until it gets a response, sends once. Row C1 of docs/testing.md.
func TestSentMailArrivesOnceUnderKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		s := &sending{in: in, messages: pick(150, 2000), kills: pick(5, 25)}
		s.run(t)
	})
}

// sending runs messages from four API clients, from one inbox to one or two others,
// under kills.
type sending struct {
	in       *installation
	messages int // to be accepted
	kills    int
	refusals bool // calls may be refused for a time

	book *ledger
	from inbox
	to   []inbox // two
}

func (s *sending) run(t *testing.T) {
	t.Helper()
	s.book = newLedger("sent")
	s.in.start()
	boxes := s.in.createInboxes("from", "to0", "to1")
	s.from, s.to = boxes[0], boxes[1:]
	const steps = 2 // of one call
	k := newKiller(t, s.in, steps*s.messages/s.kills)
	enough := func() bool { return s.book.count(accepted) >= s.messages && k.kills >= s.kills }
	down := func() {
		if s.in.engine == storetest.PostgreSQL { // on SQLite the next process knows that no other has claims
			s.in.hurry(t.Context())
		}
	}
	k.underKills(t, clients, enough, down, func(ctx context.Context, _ int) error { return s.client(ctx, k) })
	t.Logf("%d kills: %s", k.kills, s.book)
	s.audit(t)
}

// client sends messages until ctx ends, every other one with an idempotency key.
func (s *sending) client(ctx context.Context, k *killer) error {
	for ctx.Err() == nil {
		id := s.book.next()
		o := unknown
		for again := true; again; {
			n, err := s.in.await(ctx)
			if err != nil {
				break
			}
			k.step()
			err = s.call(ctx, n, id)
			k.step()
			if no, ok := errors.AsType[*unwanted](err); ok && !s.refusals {
				return no
			}
			if err == nil {
				o = accepted
			}
			again = err != nil && s.keyed(id) && ctx.Err() == nil
		}
		s.book.write(id, entry{outcome: o, to: s.recipients(id)})
	}
	return nil
}

// keyed reports whether the message is sent with an idempotency key.
func (s *sending) keyed(id string) bool { return digit(id)%2 == 0 }

func (s *sending) recipients(id string) []string {
	if digit(id)%4 < 2 {
		return []string{s.to[0].Address, s.to[1].Address}
	}
	return []string{s.to[0].Address}
}

// digit returns the last digit of the number in an id.
func digit(id string) int { return int(id[len(id)-len("0-end")] - '0') }

// call sends the message. Its error is an *unwanted when the message is refused.
func (s *sending) call(ctx context.Context, n *node, id string) error {
	c := n.caller()
	defer c.close()
	var header []string
	if s.keyed(id) {
		header = []string{"Idempotency-Key", id}
	}
	body := map[string]any{"to": s.recipients(id), "subject": id, "text": bodyMark(id)}
	return c.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+s.from.ID+"/messages", body, header...)
}

// audit waits until all accepted messages are final, and then checks the inboxes.
func (s *sending) audit(t *testing.T) {
	t.Helper()
	s.in.settle()
	sent, copies := s.in.messages("out"), 0
	for _, m := range sent {
		for _, r := range m.Recipients {
			copies++
			if r.Status != "delivered" {
				t.Errorf("%s is %s for %s", m.Subject, r.Status, r.Email)
			}
		}
	}
	arrived := s.in.messages("in")
	s.book.audit(t, arrived, byAddress(s.to...), false)
	if len(arrived) != copies {
		t.Errorf("%d copies arrived, want %d for %d messages", len(arrived), copies, len(sent))
	}
}
