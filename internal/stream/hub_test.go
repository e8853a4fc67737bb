package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// patient is a generous timeout.
const patient = 30 * time.Second

// house is a store, an inbox that receives messages, and a running hub.
type house struct {
	store   *store.Store
	in      store.Inbox
	key     store.Key
	hub     *stream.Hub
	stop    func()
	renders atomic.Int64
	failing atomic.Pointer[error] // error of rendering
}

// open starts a hub for a test that runs beside others, on the engine of the test.
func open(t *testing.T, edits ...func(*stream.Config)) *house {
	t.Helper()
	t.Parallel()
	return newHouse(t, storetest.Open(t, storetest.Engines(t)[0]), edits...)
}

func newHouse(t *testing.T, s *store.Store, edits ...func(*stream.Config)) *house {
	t.Helper()
	h := &house{store: s, in: storetest.Inbox(t, s)}
	h.key = storetest.Key(t, s, h.in.AccountID, "listener")
	cfg := stream.Config{Store: s, Render: h.render, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, edit := range edits {
		edit(&cfg)
	}
	h.hub = stream.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.hub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	h.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(h.stop)
	return h
}

// render shows an event as its id.
func (h *house) render(_ context.Context, events []store.Event) (all []stream.Rendered) {
	err := h.failing.Load()
	h.renders.Add(int64(len(events))) // a test may change it afterwards
	for _, e := range events {
		r := stream.Rendered{ID: e.ID, Frame: []byte(e.ID)}
		if err != nil {
			r = stream.Rendered{ID: e.ID, Err: *err}
		}
		all = append(all, r)
	}
	return all
}

func (h *house) open(t *testing.T, edits ...func(*stream.Wanted)) *stream.Stream {
	t.Helper()
	w := stream.Wanted{KeySeq: h.key.Seq, AccountID: h.in.AccountID}
	for _, edit := range edits {
		edit(&w)
	}
	s, err := h.hub.Open(t.Context(), w)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// receive creates n events in sequence.
func (h *house) receive(t *testing.T, n int) {
	t.Helper()
	for range n {
		storetest.Received(t, h.store, h.in)
	}
}

// log returns all events of the account.
func (h *house) log(t *testing.T) (all []store.Event) {
	t.Helper()
	all, err := h.store.EventsOf(t.Context(), h.in.AccountID, 0, 1<<60, 100_000)
	must(t, err)
	return all
}

// read reads n events.
func read(t *testing.T, s *stream.Stream, n int) (ids []string) {
	t.Helper()
	for len(ids) < n {
		frames, err := s.Next(t.Context(), patient)
		if err != nil || len(frames) == 0 {
			t.Fatalf("after %d of %d events: %d more, %v", len(ids), n, len(frames), err)
		}
		for _, f := range frames {
			ids = append(ids, string(f))
		}
	}
	return ids
}

func wantIDs(t *testing.T, got []string, want []store.Event) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(id string, e store.Event) bool { return id == e.ID }) {
		t.Errorf("got %d events that are not the %d of the log, in order", len(got), len(want))
	}
}

// wantEnd reads a stream to its end and checks the reason.
func wantEnd(t *testing.T, s *stream.Stream, why error) {
	t.Helper()
	for {
		frames, err := s.Next(t.Context(), patient)
		if err == nil && len(frames) > 0 {
			continue
		}
		if !errors.Is(err, why) {
			t.Errorf("the stream ended with %v, want %v", err, why)
		}
		return
	}
}

func TestEventIsRenderedOnceForAllStreams(t *testing.T) {
	h := open(t, func(c *stream.Config) { c.MaxPerKey = 50 })
	const listeners, events = 50, 20
	var streams []*stream.Stream
	for range listeners {
		streams = append(streams, h.open(t))
	}
	h.receive(t, events)
	for _, s := range streams {
		wantIDs(t, read(t, s, events), h.log(t))
	}
	if n := h.renders.Load(); n != events {
		t.Errorf("%d events were rendered %d times", events, n)
	}
}

// A listener that does not read is ended when its queue is full. All others get
// every event, and so does this one after it reconnects (H16).
func TestSlowListenerIsEndedAndResumes(t *testing.T) {
	t.Parallel()
	const most = 8
	for name, limit := range map[string]func(*stream.Config){
		"by events": func(c *stream.Config) { c.MaxQueued = most },
		"by bytes":  func(c *stream.Config) { c.MaxQueuedBytes = most * len("evt_01k5tthm9w5b2y7d3q8z1f6crk") },
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, limit)
			var broken atomic.Int64
			slow, good := h.open(t, func(w *stream.Wanted) { w.Broken = func() { broken.Add(1) } }), h.open(t)
			var got []string
			for range most + 1 {
				h.receive(t, 1)
				got = append(got, read(t, good, 1)...)
				if len(got) <= most && broken.Load() != 0 {
					t.Errorf("ended when %d of %d events wait", len(got), most)
				}
			}
			wantEnd(t, slow, stream.ErrSlow)
			if broken.Load() != 1 {
				t.Errorf("the listener was notified %d times", broken.Load())
			}
			wantIDs(t, got, h.log(t))
			start := h.log(t)[0].Seq - 1
			wantIDs(t, read(t, h.open(t, func(w *stream.Wanted) { w.After = &start }), most+1), h.log(t))
		})
	}
}

// Events occur while a listener opens a stream, with and without a last event.
func TestOpeningRacesWithEvents(t *testing.T) {
	h := open(t)
	h.receive(t, 1)
	const events, rounds = 300, 30
	var writing sync.WaitGroup
	for range 3 {
		writing.Go(func() { h.receive(t, events/3) })
	}
	last := h.log(t)[0]
	got := []string{last.ID}
	for range rounds { // each reads a little and closes
		s := h.open(t, func(w *stream.Wanted) { w.After = &last.Seq })
		for range 2 {
			if len(got) <= events {
				frames, err := s.Next(t.Context(), patient)
				must(t, err)
				for _, f := range frames {
					got = append(got, string(f))
				}
			}
		}
		s.Close()
		seq, _, err := h.store.EventPlace(t.Context(), h.in.AccountID, got[len(got)-1])
		must(t, err)
		last.Seq = seq
	}
	s := h.open(t, func(w *stream.Wanted) { w.After = &last.Seq })
	got = append(got, read(t, s, events+1-len(got))...)
	writing.Wait()
	wantIDs(t, got, h.log(t))
}

// A listener that joins after a time without listeners gets events from then
// on, even if a transaction with an event is open at that moment.
func TestListenerAfterAPauseGetsNoOldEvents(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	h := newHouse(t, storetest.OpenConfig(t, cfg))
	first := h.open(t)
	h.receive(t, 1)
	read(t, first, 1)
	first.Close()
	h.receive(t, 3) // without a listener
	db, err := sqlx.Open("postgres", cfg.Database)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.Beginx()
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // after a commit this does nothing
	const q = `INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, 'evt_open', 'email.queued', false, '{}', $2)`
	if _, err := tx.Exec(q, h.in.AccountID, store.NewTime(time.Now())); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *stream.Stream, 1)
	go func() {
		s, err := h.hub.Open(t.Context(), stream.Wanted{KeySeq: h.key.Seq, AccountID: h.in.AccountID})
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	var late *stream.Stream
	select {
	case late = <-opened:
	case <-time.After(100 * time.Millisecond): // it may wait for the transaction to end
	}
	must(t, tx.Commit())
	if late == nil {
		late = <-opened
	}
	defer late.Close()
	h.receive(t, 1)
	got, all := read(t, late, 1), h.log(t)
	if got[0] == "evt_open" { // it may have committed after the stream was opened
		got = read(t, late, 1)
	}
	wantIDs(t, got, all[len(all)-1:])
}

// H3: the streams of a revoked or expired key end; others continue.
func TestStreamsOfARevokedKeyEnd(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		h := newHouse(t, storetest.OpenConfig(t, cfg))
		expires := store.NewTime(clock.Now().Add(time.Hour))
		revoked := storetest.Key(t, h.store, h.in.AccountID, "revoked")
		expired := storetest.Key(t, h.store, h.in.AccountID, "expired", func(k *store.Key) { k.ExpiresAt = &expires })
		good := h.open(t)
		ending := []*stream.Stream{
			h.open(t, func(w *stream.Wanted) { w.KeySeq = revoked.Seq }),
			h.open(t, func(w *stream.Wanted) { w.KeySeq = revoked.Seq }),
		}
		late := h.open(t, func(w *stream.Wanted) { w.KeySeq = expired.Seq })
		began := time.Now()
		must(t, h.store.RevokeKey(t.Context(), h.in.AccountID, revoked.ID))
		for _, s := range ending {
			wantEnd(t, s, stream.ErrRevoked)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the streams of a revoked key ended after %v", took)
		}
		h.receive(t, 1)
		read(t, late, 1)
		clock.Add(2 * time.Hour)
		wantEnd(t, late, stream.ErrRevoked)
		read(t, good, 1)
	})
}

// An event that cannot be rendered now is sent later, in order. One that can
// never be rendered does not block the others.
func TestEventsThatCannotBeRendered(t *testing.T) {
	h := open(t)
	s := h.open(t)
	away := fmt.Errorf("read it: %w", store.ErrUnavailable)
	h.failing.Store(&away)
	h.receive(t, 2)
	for h.renders.Load() == 0 {
		if frames, err := s.Next(t.Context(), time.Millisecond); err != nil || len(frames) > 0 {
			t.Fatalf("while the database is unreachable: %d events, %v", len(frames), err)
		}
	}
	h.failing.Store(nil)
	wantIDs(t, read(t, s, 2), h.log(t))

	for _, never := range []error{store.ErrNotFound, errors.New("it makes no sense")} {
		before := h.renders.Load()
		h.failing.Store(&never)
		h.receive(t, 1)
		for h.renders.Load() == before {
			if frames, err := s.Next(t.Context(), time.Millisecond); err != nil || len(frames) > 0 {
				t.Fatalf("%v: %d events, %v", never, len(frames), err)
			}
		}
		h.failing.Store(nil)
		h.receive(t, 1)
		all := h.log(t)
		wantIDs(t, read(t, s, 1), all[len(all)-1:])
	}
}

// N2, H16: events stored by one node reach listeners of another, in order.
func TestNodesHearEachOther(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	a, other := newHouse(t, storetest.OpenConfig(t, cfg)), storetest.OpenConfig(t, cfg)
	b := &house{store: other, in: a.in, key: a.key}
	b.hub = stream.New(stream.Config{Store: other, Render: b.render})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.hub.Run(ctx) }) // it returns nil
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	here, there := a.open(t), b.open(t)
	const each = 100
	for _, h := range []*house{a, b} {
		for range 2 {
			running.Go(func() { h.receive(t, each/2) })
		}
	}
	one, two := read(t, here, 2*each), read(t, there, 2*each)
	wantIDs(t, one, a.log(t))
	if strings.Join(one, " ") != strings.Join(two, " ") {
		t.Error("the nodes send the events in another order")
	}
}

// An account with an event that takes forever to render does not delay other
// accounts, and loses none of its events.
func TestCostlyEventDelaysNoOtherAccount(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := &house{store: s, in: storetest.Inbox(t, s)}
		h.key = storetest.Key(t, s, h.in.AccountID, "listener")
		other := storetest.Inbox(t, s)
		key := storetest.Key(t, s, other.AccountID, "other")
		release := make(chan struct{})
		hub := stream.New(stream.Config{Store: s, MaxPending: 4, Render: func(ctx context.Context, events []store.Event) []stream.Rendered {
			if events[0].AccountID == h.in.AccountID {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
			return h.render(ctx, events)
		}})
		h.hub = hub
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = hub.Run(ctx) }) // it returns nil
		t.Cleanup(func() {
			cancel()
			running.Wait()
		})
		slow, quick := h.open(t), h.open(t, func(w *stream.Wanted) { w.KeySeq, w.AccountID = key.Seq, other.AccountID })
		const events = 20 // more than may be pending
		for range events {
			h.receive(t, 1)
			storetest.Received(t, s, other)
			read(t, quick, 1)
		}
		close(release)
		wantIDs(t, read(t, slow, events), h.log(t))
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
