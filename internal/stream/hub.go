package stream

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// pollEvery is the maximum interval between checks of the log.
	pollEvery = time.Second
	// checkEvery is the interval at which the listeners' keys are checked.
	checkEvery = 2 * time.Second
	// heartbeat is how long a listener may take to read events before a new
	// stream of its key may replace it. placeWait is how long a new stream
	// waits for a place to become free.
	heartbeat = 20 * time.Second
	placeWait = time.Second
	// settleFirst is the first interval at which the hub checks whether other
	// transactions have ended. It doubles each time, up to settleLast.
	settleFirst = 2 * time.Millisecond
	settleLast  = 50 * time.Millisecond
	// pageSize is the number of events read at a time.
	pageSize = 256
)

// Errors for streams that cannot be opened or have ended.
var (
	ErrTooMany = errors.New("the key has too many streams")
	ErrSlow    = errors.New("the listener does not keep up")
	ErrRevoked = errors.New("the key was revoked or has expired")
	ErrStopped = errors.New("the service stops")
	ErrReset   = errors.New("the log of events has lost its end in a failover")
	// ErrReplaced ends a stream that does not read when its key opens a new
	// one.
	ErrReplaced = errors.New("the listener does not read, and a new stream of its key took its place")
)

// Config configures a Hub. Store and Render are required.
type Config struct {
	Store *store.Store
	// Render returns one Rendered for each event, in order.
	Render func(ctx context.Context, events []store.Event) []Rendered
	// MaxPerKey is the maximum number of live streams per key on this node. The
	// default is 10.
	MaxPerKey int
	// Heartbeat is how long a listener may take to read the events from Next
	// before a new stream of its key may replace it. The default is 20 seconds.
	// PlaceWait is how long a new stream waits for a place. The default is 1
	// second.
	Heartbeat, PlaceWait time.Duration
	// MaxQueued and MaxQueuedBytes limit the queue of a listener. The defaults
	// are 1,024 events and 2 MiB. A single event may exceed MaxQueuedBytes.
	MaxQueued, MaxQueuedBytes int
	// MaxPending is the maximum number of events per account that wait in
	// memory to be rendered. Further events are read from the log again. The
	// default is 1,024.
	MaxPending int
	// Log receives warnings and errors; nil means slog.Default().
	Log *slog.Logger
}

// Rendered is an event as listeners receive it.
type Rendered struct {
	ID    string // of the event
	Frame []byte
	// Err reports why Frame is missing. If it is store.ErrNotFound, the subject
	// of the event is deleted and the event is skipped.
	Err error
}

func (c *Config) setDefaults() {
	c.MaxPerKey = cmp.Or(c.MaxPerKey, 10)
	c.Heartbeat = cmp.Or(c.Heartbeat, heartbeat)
	c.PlaceWait = cmp.Or(c.PlaceWait, placeWait)
	c.MaxQueued = cmp.Or(c.MaxQueued, 1024)
	c.MaxPending = cmp.Or(c.MaxPending, 1024)
	c.MaxQueuedBytes = cmp.Or(c.MaxQueuedBytes, 2<<20)
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Hub follows the log and sends events to streams. Streams may be opened while
// Run runs. Before Run, Open waits for it; after Run, it returns ErrStopped.
type Hub struct {
	cfg  Config
	kick chan struct{} // signals a new question

	// Used only by Run.
	tail     *store.EventTail
	position int64 // events up to here are sent
	epoch    int   // of the tail

	mu      sync.Mutex
	stopped bool
	joined  map[int64]map[*Stream]struct{} // by account: streams that receive live events
	open    map[int64]map[*Stream]struct{} // by key: all open streams, including those catching up
	asked   []question
	left    chan struct{} // closed when a stream leaves
	feeds   map[int64]*feed

	feeding   sync.WaitGroup // running feeds
	rendering chan struct{}  // holds a token for each feed that is rendering
}

// question asks for the settled position of the log. If stream is not nil, it
// receives all events after that position.
type question struct {
	stream *Stream
	result chan result // buffer of one
}

type result struct {
	settled int64
	err     error
}

// New returns a Hub. It does nothing until Run.
func New(cfg Config) *Hub {
	cfg.setDefaults()
	return &Hub{
		cfg: cfg, kick: make(chan struct{}, 1), tail: cfg.Store.TailEvents(),
		joined: map[int64]map[*Stream]struct{}{}, open: map[int64]map[*Stream]struct{}{},
		left: make(chan struct{}), feeds: map[int64]*feed{}, rendering: make(chan struct{}, renderers),
	}
}

// Run sends events until ctx ends. Then it ends all streams and returns nil.
func (h *Hub) Run(ctx context.Context) error {
	defer h.stop()
	defer h.feeding.Wait()
	wake := h.cfg.Store.WakeEvents()
	defer wake.Stop()
	r := rounds{hub: h, checked: time.Now()}
	work.Due(ctx, r.round, wake.C, h.kick)
	return nil
}

// rounds is the state between rounds.
type rounds struct {
	hub     *Hub
	pause   time.Duration // the last pause while the log was not settled
	failing bool
	checked time.Time // when streams of revoked keys were last ended
}

// round sends new events and, every checkEvery, ends the streams of revoked
// keys. It returns the maximum time until the next round.
func (r *rounds) round(ctx context.Context) time.Duration {
	if time.Since(r.checked) >= checkEvery {
		r.checked = time.Now()
		r.report(ctx, r.hub.endRevoked(ctx))
	}
	pause := r.handOut(ctx)
	return min(pause, max(time.Until(r.checked.Add(checkEvery)), time.Millisecond))
}

// handOut sends new events if a stream listens. It returns the maximum time
// until the next check.
func (r *rounds) handOut(ctx context.Context) time.Duration {
	if !r.hub.listened() {
		// The state of the tail becomes outdated. The next listener wants only
		// events from then on.
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

// report logs the first of consecutive failures.
func (r *rounds) report(ctx context.Context, err error) {
	if err != nil && !r.failing && ctx.Err() == nil {
		r.hub.cfg.Log.WarnContext(ctx, "the streams of events wait for the database", "error", err)
	}
	r.failing = err != nil
}

// RunOnce sends new events and resolves pending questions. pending reports that
// there are further events that are not settled yet.
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
		h.reply(q, result{settled, err})
	}
	return pending, err
}

// handOut adds the events up to settled to the feeds of their accounts.
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

// usable returns the frame of an event, or nil if the event cannot be rendered.
// An error means that the database is unavailable.
func (h *Hub) usable(ctx context.Context, r Rendered) ([]byte, error) {
	switch {
	case r.Err == nil:
		return r.Frame, nil
	case errors.Is(r.Err, store.ErrNotFound):
		return nil, nil
	case errors.Is(r.Err, store.ErrUnavailable) || ctx.Err() != nil:
		return nil, r.Err
	}
	h.cfg.Log.ErrorContext(ctx, "an event cannot be rendered", "event_id", r.ID, "error", r.Err)
	return nil, nil
}

// takers returns the streams that want an event.
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

// endRevoked ends the streams whose key was revoked or has expired.
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
	return slices.Sorted(maps.Keys(h.open))
}

func (h *Hub) streamsOf(key int64) []*Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.open[key]))
}

// end ends and removes streams.
func (h *Hub) end(why error, streams ...*Stream) {
	for _, s := range streams {
		s.end(why)
		s.Close()
	}
}

// stop ends all streams and fails all pending questions.
func (h *Hub) stop() {
	h.mu.Lock()
	h.stopped = true
	asked := h.asked
	h.asked = nil
	h.mu.Unlock()
	for _, q := range asked {
		q.result <- result{err: ErrStopped}
	}
	for _, key := range h.keys() {
		h.end(ErrStopped, h.streamsOf(key)...)
	}
}
