package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/place"
)

// streamsPerKey is how many streams a key may have open.
const streamsPerKey = 10

// streams measures the cost of many open streams, each with one event a second from its
// own inbox, compared with the same messages without open streams.
type streams struct {
	service  string
	postgres bool
	n, conns int
	lasting  time.Duration

	running *place.Service
	api     client
	inboxes []string
	heard   hearing
}

func measureStreams(ctx context.Context, args []string) (err error) {
	m := &streams{}
	flags := flag.NewFlagSet("streams", flag.ExitOnError)
	flags.StringVar(&m.service, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flags.BoolVar(&m.postgres, "postgres", false, "use a new schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES")
	flags.IntVar(&m.n, "n", 1000, "streams, and events a second")
	flags.IntVar(&m.conns, "c", 16, "connections that create the events")
	flags.DurationVar(&m.lasting, "for", 20*time.Second, "length of each part")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := place.New(ctx, m.service, m.postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx))) }()
	if m.running, err = p.Start(ctx); err != nil {
		return err
	}
	defer m.running.Stop()
	fmt.Printf("%s, %d streams, %d events a second\n", p.Engine(), m.n, m.n)
	return m.run(ctx)
}

func (m *streams) run(ctx context.Context) error {
	m.api = newClient(m.running, m.conns)
	m.inboxes = make([]string, m.n)
	if err := m.each(ctx, func(ctx context.Context, i int) (err error) {
		m.inboxes[i], err = m.api.newInbox(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := m.part(ctx, "no stream open"); err != nil {
		return err
	}
	before := m.running.Memory()
	listening, err := m.listen(ctx)
	if err != nil {
		return err
	}
	defer listening.close()
	open := m.running.Memory()
	fmt.Printf("opening them: %.1f MB more, %.1f KB each\n", float64(open-before)/1e6, float64(open-before)/1e3/float64(m.n))
	if err := m.part(ctx, "all open"); err != nil {
		return err
	}
	return m.heard.report(ctx)
}

// part creates the events for a while and prints what that cost.
func (m *streams) part(ctx context.Context, name string) error {
	cpu, begun := m.running.CPU(), time.Now()
	made, err := m.load(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	used := m.running.CPU() - cpu
	fmt.Printf("%s: %.0f events a second for %.0f s, %.0f µs of the service's CPU each (%.2f of a core), memory %.1f MB\n",
		name, float64(made)/took.Seconds(), took.Seconds(), float64(used.Microseconds())/float64(made),
		used.Seconds()/took.Seconds(), float64(m.running.Memory())/1e6)
	return nil
}

// load creates one event a second for each inbox, evenly, or as many as possible.
func (m *streams) load(ctx context.Context) (made int64, err error) {
	begun := time.Now()
	var next, done atomic.Int64
	total := int64(m.lasting.Seconds() * float64(m.n))
	making, ctx := errgroup.WithContext(ctx)
	for range m.conns {
		making.Go(func() error {
			for {
				i := next.Add(1) - 1
				due := begun.Add(time.Duration(i) * time.Second / time.Duration(m.n))
				if i >= total || time.Since(begun) > m.lasting {
					return nil
				}
				if err := sleepUntil(ctx, due); err != nil {
					return err
				}
				if err := m.one(ctx, m.inboxes[i%int64(m.n)]); err != nil {
					return err
				}
				done.Add(1)
			}
		})
	}
	err = making.Wait()
	return done.Load(), err
}

// one creates an event and records when it made the call and when the call returned,
// which is after the commit.
func (m *streams) one(ctx context.Context, inbox string) error {
	called := time.Now()
	id, err := m.api.simulate(ctx, inbox, "streamed")
	if err == nil {
		m.heard.made(id, called, time.Now())
	}
	return err
}

// each calls do for each stream, a few at a time.
func (m *streams) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	working, ctx := errgroup.WithContext(ctx)
	working.SetLimit(m.conns)
	for i := range m.n {
		working.Go(func() error { return do(ctx, i) })
	}
	return working.Wait()
}

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hearing records when events were created and when they arrived, by the id of their
// message.
type hearing struct {
	mu      sync.Mutex
	on      bool // streams are open
	events  map[string]times
	strange int // arrived twice
}

type times struct{ called, returned, heard time.Time }

func (h *hearing) note(id string, set func(*times)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return
	}
	t := h.events[id]
	set(&t)
	h.events[id] = t
}

func (h *hearing) made(id string, called, returned time.Time) {
	h.note(id, func(t *times) { t.called, t.returned = called, returned })
}

func (h *hearing) hear(id string, at time.Time) {
	h.note(id, func(t *times) {
		if !t.heard.IsZero() {
			h.strange++
		}
		t.heard = at
	})
}

// report waits for the last events and prints the latencies.
func (h *hearing) report(ctx context.Context) error {
	var fromCall, fromResponse samples
	lost := 0
	for range 100 { // ten seconds
		fromCall, fromResponse, lost = h.samples()
		if lost == 0 {
			break
		}
		if err := sleepUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return err
		}
	}
	if lost > 0 || h.strange > 0 || len(fromCall) == 0 {
		return fmt.Errorf("%d events did not arrive, %d arrived twice, %d once", lost, h.strange, len(fromCall))
	}
	slices.Sort(fromCall)
	slices.Sort(fromResponse)
	fmt.Printf("%d events, each arrived once; from the call that creates it: p50 %.1f ms, p99 %.1f ms, all %.1f ms; from its response: p50 %.1f ms, p99 %.1f ms\n",
		len(fromCall), fromCall.at(0.5), fromCall.at(0.99), fromCall.at(1), fromResponse.at(0.5), fromResponse.at(0.99))
	return nil
}

func (h *hearing) samples() (fromCall, fromResponse samples, lost int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.events {
		if t.heard.IsZero() {
			lost++
			continue
		}
		fromCall = append(fromCall, t.heard.Sub(t.called))
		fromResponse = append(fromResponse, max(t.heard.Sub(t.returned), 0))
	}
	return fromCall, fromResponse, lost
}
