package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestStreamsResumeWithoutLossOrRepeat makes listeners drop their event streams
// repeatedly and resume with Last-Event-ID, while mail arrives and the service is
// killed. Each listener gets every stored message once, and all listeners get them in
// the same order. Row H16 of docs/testing.md.
func TestStreamsResumeWithoutLossOrRepeat(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		r := &receiving{in: in, size: 2 << 10, messages: pick(250, 3000), kills: pick(2, 20), book: newLedger("streamed")}
		in.start()
		r.boxes = in.createInboxes("box0", "box1")
		rng := randomness(t)
		listeners := make([]*listener, 3)
		for i := range listeners { // the first never drops its stream by itself
			listeners[i] = &listener{in: in, rng: rand.New(rand.NewPCG(rng.Uint64(), 0)), drops: i * pick(50, 500)}
		}
		r.begin(t, listeners)
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		listening, ctx := errgroup.WithContext(ctx)
		for _, l := range listeners {
			listening.Go(func() error { return l.run(ctx) })
		}
		k := newKiller(t, in, (int(replied)+1)*r.messages/r.kills)
		enough := func() bool {
			done := r.book.count(accepted) >= r.messages && k.kills >= r.kills
			return done && !slices.ContainsFunc(listeners, func(l *listener) bool { return l.dropped.Load() < int64(l.drops) }) || ctx.Err() != nil
		}
		k.underKills(t, clients, enough, func() {}, func(ctx context.Context, i int) error { return r.client(ctx, k, i) })
		last := r.book.next()
		for _, l := range listeners {
			l.last.Store(&last)
		}
		r.deliver(t, last)
		r.book.audit(t, in.messages("in"), byAddress(r.boxes...), false)
		if err := listening.Wait(); err != nil {
			t.Fatal(err)
		}
		checkListeners(t, in, listeners)
		t.Logf("%d kills, %s; streams dropped %d, %d and %d times: 0 of %d events lost, 0 repeated", k.kills, r.book,
			listeners[0].dropped.Load(), listeners[1].dropped.Load(), listeners[2].dropped.Load(), len(listeners[0].heard))
	})
}

// begin delivers a first message to all listeners.
func (r *receiving) begin(t *testing.T, listeners []*listener) {
	t.Helper()
	streams := make([]*eventStream, len(listeners))
	for i := range listeners {
		s, err := r.in.current().listen(t.Context(), firstKey, "?events=message.received", "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		streams[i] = s
	}
	r.deliver(t, r.book.next())
	for i, l := range listeners {
		e, err := streams[i].next()
		if err != nil {
			t.Fatal(err)
		}
		l.heard = append(l.heard, e)
	}
}

// deliver sends a message that must be accepted.
func (r *receiving) deliver(t *testing.T, id string) {
	t.Helper()
	c, err := dialSMTP(t.Context(), r.in.current().smtp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	m := newMessage(id, r.size, r.boxes[0].Address)
	o, err := c.send(m)
	if err != nil {
		t.Fatal(err)
	}
	r.book.write(id, entry{outcome: o, to: m.to, size: len(m.raw)})
}

// checkListeners compares what the listeners got with what is stored, and with what
// a stream replays now.
func checkListeners(t *testing.T, in *installation, listeners []*listener) {
	t.Helper()
	stored := map[string]bool{}
	for _, m := range in.messages("in") {
		stored[m.ID] = true
	}
	first := listeners[0].heard
	for i, l := range listeners {
		heard, ids := map[string]bool{}, map[string]bool{}
		for _, e := range l.heard {
			if ids[e.ID] || heard[e.Data.ID] || !stored[e.Data.ID] {
				t.Errorf("listener %d got %s twice, or it is not stored", i, e.Data.ID)
			}
			ids[e.ID], heard[e.Data.ID] = true, true
		}
		if !slices.EqualFunc(l.heard, first, func(a, b streamed) bool { return a.ID == b.ID }) {
			t.Errorf("listener %d got %d events, which differ from the %d of listener 0", i, len(l.heard), len(first))
		}
	}
	if lost := len(stored) - len(first); lost != 0 {
		t.Errorf("%d of %d messages had no event", lost, len(stored))
	}
	again, err := in.current().listen(t.Context(), firstKey, "?events=message.received", first[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	for _, want := range first[1:] {
		if e, err := again.next(); err != nil || e.ID != want.ID {
			t.Fatalf("replayed %s, %v; first streamed as %s", e.ID, err, want.ID)
		}
	}
}

// listener gets the events of received messages. It resumes from its last event.
type listener struct {
	in    *installation
	rng   *rand.Rand
	drops int // still to make

	heard   []streamed
	dropped atomic.Int64           // streams, including those dropped by kills
	last    atomic.Pointer[string] // the event to wait for; nil while unknown
}

// run listens until all events have arrived.
func (l *listener) run(ctx context.Context) error {
	for {
		n, err := l.in.await(ctx)
		if err != nil {
			return fmt.Errorf("after %d events, %d streams: %w", len(l.heard), l.dropped.Load(), err)
		}
		s, err := n.listen(ctx, firstKey, "?events=message.received", l.heard[len(l.heard)-1].ID)
		if _, no := errors.AsType[*unwanted](err); no {
			return err
		}
		if err != nil {
			continue // killed meanwhile
		}
		stop := context.AfterFunc(ctx, s.close)
		done := l.hear(s)
		stop()
		s.close()
		if done {
			return nil
		}
		l.dropped.Add(1)
	}
}

// hear reads some events, and reports whether these are all.
func (l *listener) hear(s *eventStream) bool {
	for left := l.rng.IntN(4); left >= 0; left-- {
		e, err := s.next()
		if err != nil {
			return false
		}
		l.heard = append(l.heard, e)
		if last := l.last.Load(); last != nil && e.Data.Subject == *last {
			return true
		}
		if l.drops == 0 {
			left++ // it does not drop the stream by itself
		}
	}
	return false
}
