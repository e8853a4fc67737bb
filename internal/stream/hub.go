package stream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// pollEvery is after how long the hub looks at the log whatever it was told.
	pollEvery = time.Second
	// checkEvery is how often the keys of the listeners are looked at.
	checkEvery = 2 * time.Second
	// heartbeat is how long a listener may take to read what it was given before a
	// new stream of its key may replace it, and placeWait how long a new stream
	// waits for the place of one whose client has gone.
	heartbeat = 20 * time.Second
	placeWait = time.Second
	// settleFirst is after how long the hub looks again for other transactions to
	// end; it looks half as often each time, down to every settleLast.
	settleFirst = 2 * time.Millisecond
	settleLast  = 50 * time.Millisecond
	// pageSize is how many events are read at a time.
	pageSize = 256
)

// Why a stream cannot be opened, or has ended.
var (
	ErrTooMany = errors.New("the key has too many streams")
	ErrSlow    = errors.New("the listener does not keep up")
	ErrRevoked = errors.New("the key was revoked or has expired")
	ErrStopped = errors.New("the service stops")
	ErrReset   = errors.New("the log of events has lost its end in a failover")
	// ErrReplaced ends a stream that does not read when its key opens a new one.
	ErrReplaced = errors.New("the listener does not read, and a new stream of its key took its place")
)

// Config is what a hub needs. Store and Render are required.
type Config struct {
	Store *store.Store
	// Render returns events as their listeners get them, one for each, in order.
	Render func(ctx context.Context, events []store.Event) []Rendered
	// MaxPerKey is how many live streams a key may have open on this node; 10 by
	// default.
	MaxPerKey int
	// Heartbeat is how long a listener may take to read what Next returned before
	// a new stream of its key may replace it; 20 seconds by default. PlaceWait is
	// how long a new stream waits for a place; 1 second by default.
	Heartbeat, PlaceWait time.Duration
	// MaxQueued and MaxQueuedBytes bound what waits for one listener; 1,024 events
	// and 2 MiB by default. One event may wait whatever its size.
	MaxQueued, MaxQueuedBytes int
	// MaxPending is how many events of one account wait to be rendered in memory;
	// 1,024 by default. More are read from the log again.
	MaxPending int
	// Log takes what goes wrong; nil means slog.Default().
	Log *slog.Logger
}

// Rendered is one event as its listeners get it.
type Rendered struct {
	ID    string // of the event
	Frame []byte
	// Err is why there is none. store.ErrNotFound means that what it is about is
	// deleted, and nobody is told.
	Err error
}

func (c *Config) setDefaults() {
	if c.MaxPerKey == 0 {
		c.MaxPerKey = 10
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = heartbeat
	}
	if c.PlaceWait == 0 {
		c.PlaceWait = placeWait
	}
	if c.MaxQueued == 0 {
		c.MaxQueued = 1024
	}
	if c.MaxPending == 0 {
		c.MaxPending = 1024
	}
	if c.MaxQueuedBytes == 0 {
		c.MaxQueuedBytes = 2 << 20
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Hub follows the log and hands events out. Listeners come and go while Run
// runs; before it they wait for it, and after it there are none.
type Hub struct {
	cfg  Config
	kick chan struct{} // somebody asks

	// Of Run alone.
	tail     *store.EventTail
	position int64 // all up to here is handed out
	epoch    int   // of the tail

	mu      sync.Mutex
	stopped bool
	joined  map[int64]map[*Stream]struct{} // by account: those that get what happens
	open    map[int64]map[*Stream]struct{} // by key: those too that are still catching up
	asked   []question
	left    chan struct{} // closed when a stream leaves
	feeds   map[int64]*feed

	feeding   sync.WaitGroup // the feeds that run
	rendering chan struct{}  // holds a token for each feed that renders
}

// question asks up to where the log is settled now, and to hand out to the
// stream, unless it is nil, what comes after that.
type question struct {
	stream *Stream
	answer chan answer // holds one
}

type answer struct {
	settled int64
	err     error
}

// New returns a hub that does nothing until Run.
func New(cfg Config) *Hub {
	cfg.setDefaults()
	return &Hub{
		cfg: cfg, kick: make(chan struct{}, 1), tail: cfg.Store.TailEvents(),
		joined: map[int64]map[*Stream]struct{}{}, open: map[int64]map[*Stream]struct{}{},
		left: make(chan struct{}), feeds: map[int64]*feed{}, rendering: make(chan struct{}, renderers),
	}
}

// Run hands events out until ctx ends. Then it ends all streams and returns nil.
func (h *Hub) Run(ctx context.Context) error {
	defer h.stop()
	defer h.feeding.Wait()
	wake := h.cfg.Store.WakeEvents()
	defer wake.Stop()
	r := rounds{hub: h, checked: time.Now()}
	work.Due(ctx, r.round, wake.C, h.kick)
	return nil
}

// rounds remembers what the next round depends on.
type rounds struct {
	hub     *Hub
	pause   time.Duration // the last, while the log is not settled
	failing bool
	checked time.Time // when streams of revoked keys were last ended
}

// round hands out what is new and, every checkEvery, ends the streams of revoked
// keys. It returns when the next round is due at the latest.
func (r *rounds) round(ctx context.Context) time.Duration {
	if time.Since(r.checked) >= checkEvery {
		r.checked = time.Now()
		r.report(ctx, r.hub.endRevoked(ctx))
	}
	pause := r.handOut(ctx)
	return min(pause, max(time.Until(r.checked.Add(checkEvery)), time.Millisecond))
}

// handOut hands out what is new, if a stream listens, and returns when to check
// again at the latest.
func (r *rounds) handOut(ctx context.Context) time.Duration {
	if !r.hub.listened() {
		// What the tail knows grows old. Who comes next wants to hear what happens
		// from then on, not all that has happened since.
		r.hub.tail, r.hub.position, r.hub.epoch = r.hub.cfg.Store.TailEvents(), 0, 0
		return pollEvery
	}
	pending, err := r.hub.RunOnce(ctx)
	r.report(ctx, err)
	if err != nil || !pending {
		r.pause = 0
		return pollEvery
	}
	r.pause = min(max(settleFirst, 2*r.pause), settleLast)
	return r.pause
}

// report logs the first of several failures.
func (r *rounds) report(ctx context.Context, err error) {
	if err != nil && !r.failing && ctx.Err() == nil {
		r.hub.cfg.Log.WarnContext(ctx, "the streams of events wait for the database", "error", err)
	}
	r.failing = err != nil
}

// RunOnce hands out what is new and lets those listen who asked before. Pending
// says that there is more, which other transactions may still come before.
func (h *Hub) RunOnce(ctx context.Context) (pending bool, err error) {
	asked := h.takeQuestions()
	settled, known, pending, err := h.tail.Settle(ctx)
	if epoch := h.tail.Epoch(); epoch != h.epoch {
		h.epoch, h.position = epoch, 0
		h.dropFeeds()
		for _, key := range h.keys() {
			h.end(ErrReset, h.streamsOf(key)...)
		}
	}
	if err == nil && !known {
		h.putBack(asked)
		return pending, nil
	}
	if err == nil {
		err = h.handOut(ctx, settled)
	}
	for _, q := range asked {
		h.reply(q, answer{settled, err})
	}
	return pending, err
}

// handOut gives the events up to settled to the feeds of their accounts.
func (h *Hub) handOut(ctx context.Context, settled int64) error {
	for h.position < settled {
		if !h.anyJoined() {
			h.position = settled
			return nil
		}
		events, err := h.cfg.Store.EventsBetween(ctx, h.position, settled, pageSize)
		if err != nil {
			return err
		}
		for _, e := range events {
			if takers := h.takers(e); len(takers) > 0 {
				h.give(ctx, wanted{e, takers})
			}
			h.position = e.Seq
		}
		if len(events) < pageSize {
			h.position = settled
		}
	}
	return nil
}

// usable returns nil for an event that cannot be told. An error is of the
// database, and passes.
func (h *Hub) usable(ctx context.Context, r Rendered) ([]byte, error) {
	switch {
	case r.Err == nil:
		return r.Frame, nil
	case errors.Is(r.Err, store.ErrNotFound):
		return nil, nil
	case errors.Is(r.Err, store.ErrUnavailable) || ctx.Err() != nil:
		return nil, r.Err
	}
	h.cfg.Log.ErrorContext(ctx, "an event cannot be told", "event_id", r.ID, "error", r.Err)
	return nil, nil
}

// takers are the streams that want an event.
func (h *Hub) takers(e store.Event) []*Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	var takers []*Stream
	for s := range h.joined[e.AccountID] {
		if e.Seq > s.from && s.want.wants(e) {
			takers = append(takers, s)
		}
	}
	return takers
}

// endRevoked ends the streams whose key may no longer be used.
func (h *Hub) endRevoked(ctx context.Context) error {
	keys := h.keys()
	if len(keys) == 0 {
		return nil
	}
	gone, err := h.cfg.Store.RevokedKeys(ctx, keys)
	for _, key := range gone {
		h.end(ErrRevoked, h.streamsOf(key)...)
	}
	return err
}

func (h *Hub) keys() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]int64, 0, len(h.open))
	for k := range h.open {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (h *Hub) streamsOf(key int64) []*Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	streams := make([]*Stream, 0, len(h.open[key]))
	for s := range h.open[key] {
		streams = append(streams, s)
	}
	return streams
}

// end ends streams, and takes them out.
func (h *Hub) end(why error, streams ...*Stream) {
	for _, s := range streams {
		s.end(why)
		s.Close()
	}
}

// stop ends all streams, and answers all who ask.
func (h *Hub) stop() {
	h.mu.Lock()
	h.stopped = true
	asked := h.asked
	h.asked = nil
	h.mu.Unlock()
	for _, q := range asked {
		q.answer <- answer{err: ErrStopped}
	}
	for _, key := range h.keys() {
		h.end(ErrStopped, h.streamsOf(key)...)
	}
}
