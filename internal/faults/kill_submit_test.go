package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// killsVar sets the number of kills in a run of TestSubmittedMailArrivesOnceUnderKills,
// so that the long form can be run in pieces.
const killsVar = "POSTROOM_TEST_KILLS"

// TestSubmittedMailArrivesOnceUnderKills kills the service while clients submit
// messages over SMTP, between the start of the data and the reply. A client that got
// no reply submits the same message again until it gets one. Every message arrives
// once at each of its recipients. Row C1 of docs/testing.md.
func TestSubmittedMailArrivesOnceUnderKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		s := &submitting{sending: sending{in: in, kills: pick(8, 1000), book: newLedger("submitted")}}
		if n, err := strconv.Atoi(os.Getenv(killsVar)); err == nil {
			s.kills = n
		}
		s.run(t)
	})
}

// submitting runs messages from four SMTP clients, from one inbox to one or two
// others, under kills.
type submitting struct {
	sending

	cut      atomic.Int64 // submissions without a reply
	repeated atomic.Int64 // of them, those that had been accepted
}

func (s *submitting) run(t *testing.T) {
	t.Helper()
	s.in.settings = append(s.in.settings, "POSTROOM_SUBMISSION=127.0.0.1:0")
	s.in.start()
	boxes := s.in.createInboxes("from", "to0", "to1")
	s.from, s.to = boxes[0], boxes[1:]
	const steps, between = 2, 8 // steps of a message, and messages between two kills
	k := newKiller(t, s.in, steps*between)
	down := func() {
		if s.in.engine == storetest.PostgreSQL { // on SQLite the next process knows that no other has claims
			s.in.hurry(t.Context())
		}
	}
	enough := func() bool { return k.kills >= s.kills }
	k.underKills(t, clients, enough, down, func(ctx context.Context, _ int) error { return s.client(ctx, k) })
	t.Logf("%d kills: %s; %d submissions got no reply, and %d of them had been accepted", k.kills, s.book, s.cut.Load(), s.repeated.Load())
	s.audit(t)
}

// client submits messages until ctx ends, on one connection while it lasts. It
// repeats each until it is accepted.
func (s *submitting) client(ctx context.Context, k *killer) error {
	var c *smtpClient
	for ctx.Err() == nil {
		id := s.book.next()
		size := 2 << 10
		if digit(id) == 0 {
			size = 300 << 10 // kept in a file
		}
		m := newMessageFrom(s.from.Address, id, size, s.recipients(id)...)
		o, cut := unknown, false
		for o != accepted && s.in.t.Context().Err() == nil { // also when there will be no more kills
			var err error
			if c == nil {
				c, err = s.dial(s.in.t.Context(), k)
			}
			if err == nil {
				o, err = c.send(m)
			}
			if no, ok := errors.AsType[*refusal](err); ok {
				return fmt.Errorf("%s was refused: %w", id, no)
			}
			if err != nil && c != nil { // killed meanwhile
				c.close()
				c = nil
				if o == unknown {
					cut = true
					s.cut.Add(1)
				}
			}
			if err == nil && strings.HasSuffix(c.said, "(already queued)") {
				if !cut {
					return fmt.Errorf("%s was accepted before it was submitted", id)
				}
				s.repeated.Add(1)
			}
		}
		s.book.write(id, entry{outcome: o, to: m.to})
	}
	if c != nil {
		c.close()
	}
	return nil
}

// dial logs in at the node that serves. Its clients let the killer strike once the
// data has begun.
func (s *submitting) dial(ctx context.Context, k *killer) (*smtpClient, error) {
	n, err := s.in.await(ctx)
	if err != nil {
		return nil, err
	}
	c, err := dialSMTP(ctx, n.submission)
	if err != nil {
		return nil, err
	}
	if err = c.logIn(); err != nil {
		c.close()
		return nil, err
	}
	var began time.Time
	c.at = func(at step) {
		switch at {
		case halfSent:
			k.step()
		case dotSent:
			began = time.Now()
			k.step()
		case replied: // a kill may come at any time before a reply, also just before it
			k.most.Store(int64(time.Since(began) + time.Since(began)/4 + 1))
		}
	}
	return c, nil
}
