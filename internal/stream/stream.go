package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// Replayed events are rendered in parts of firstPart to maxPart events.
const (
	firstPart = 4
	maxPart   = 32
)

// Wanted selects the events of a listener.
type Wanted struct {
	KeySeq, AccountID int64
	// Inboxes limits the events to these inbox ids. Nil means all events,
	// including those without an inbox.
	Inboxes []string
	// Types limits the events to these types. Nil means all.
	Types []store.EventType
	// After is the log position of the listener's last event. Nil means only
	// events from now on.
	After *int64
	// Broken is called once when the stream ends, possibly while the listener
	// processes events. It must not block.
	Broken func()
}

// wants reports whether the listener wants an event of its account. Internal
// events and those for one webhook endpoint are never sent.
func (w *Wanted) wants(e store.Event) bool {
	switch {
	case e.Type.Internal():
		return false
	case w.Inboxes != nil && (e.InboxID == nil || !slices.Contains(w.Inboxes, *e.InboxID)):
		return false
	}
	return w.Types == nil || slices.Contains(w.Types, e.Type)
}

// Stream is the stream of one listener. Next and Close must not be called
// concurrently.
type Stream struct {
	hub  *Hub
	want Wanted

	at, upTo int64         // range still to be read from the log
	page     []store.Event // events read
	part     int           // number of events in the next part
	joined   bool          // events after upTo are queued
	from     int64         // only later events are queued; protected by the hub's lock

	mu    sync.Mutex
	queue [][]byte
	bytes int
	err   error         // why the stream ended
	busy  time.Time     // since when the listener processes events; zero during Next
	asked bool          // Next must return, even without events
	ready chan struct{} // signals a change of queue, err or asked; buffer of one

	stopWatch func() bool // unregisters from the listener's context
}

// Open opens a stream for events from its return on. Close the stream after
// use; it also leaves the hub when ctx ends. The error is ErrTooMany if the key
// has too many live streams, ErrStopped if the service stops, or an error of
// the store.
func (h *Hub) Open(ctx context.Context, w Wanted) (*Stream, error) {
	s := &Stream{hub: h, want: w, part: firstPart, ready: make(chan struct{}, 1)}
	if err := h.register(ctx, s); err != nil {
		return nil, err
	}
	s.stopWatch = context.AfterFunc(ctx, func() { h.forget(s) })
	err := s.begin(ctx)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.setBusy(time.Now())
	return s, nil
}

func (s *Stream) begin(ctx context.Context) error {
	if s.want.After == nil {
		return s.join(ctx)
	}
	s.at, s.from = *s.want.After, *s.want.After
	settled, err := s.hub.ask(ctx, nil)
	s.upTo = settled
	return err
}

// join starts to queue events. Events since the last read from the log are read
// from it.
func (s *Stream) join(ctx context.Context) error {
	settled, err := s.hub.ask(ctx, s)
	if err != nil {
		return err
	}
	if s.want.After == nil {
		s.at = settled
	}
	s.upTo, s.joined = settled, true
	return nil
}

// Next returns the next events. It returns none after the time of wait, or if
// the hub probes whether the listener is still connected. After the stream has
// ended, it returns the reason.
func (s *Stream) Next(ctx context.Context, wait time.Duration) ([][]byte, error) {
	s.setBusy(time.Time{})
	defer func() { s.setBusy(time.Now()) }()
	for {
		switch {
		case len(s.page) > 0 || s.at < s.upTo:
			frames, err := s.replay(ctx)
			if err != nil || len(frames) > 0 {
				return frames, err
			}
		case !s.joined:
			if err := s.join(ctx); err != nil {
				return nil, err
			}
		default:
			return s.queued(ctx, wait)
		}
	}
}

// replay renders the next missed events: few at first, since some listeners
// disconnect early.
func (s *Stream) replay(ctx context.Context) ([][]byte, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(s.page) == 0 {
		if err := s.readPage(ctx); err != nil {
			return nil, err
		}
	}
	n := min(len(s.page), s.part)
	s.part = min(2*s.part, maxPart)
	var frames [][]byte
	for _, r := range s.hub.cfg.Render(ctx, s.page[:n]) {
		frame, err := s.hub.usable(ctx, r)
		if err != nil {
			return nil, err
		}
		if frame != nil {
			frames = append(frames, frame)
		}
	}
	s.page = s.page[n:]
	return frames, nil
}

// readPage reads the next page of wanted events from the log.
func (s *Stream) readPage(ctx context.Context) error {
	events, err := s.hub.cfg.Store.EventsOf(ctx, s.want.AccountID, s.at, s.upTo, pageSize)
	if err != nil {
		return err
	}
	s.at = s.upTo
	if len(events) == pageSize {
		s.at = events[pageSize-1].Seq
	}
	s.page = slices.DeleteFunc(events, func(e store.Event) bool { return !s.want.wants(e) })
	return nil
}

// queued waits for live events.
func (s *Stream) queued(ctx context.Context, wait time.Duration) ([][]byte, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if frames, asked, err := s.take(); err != nil || len(frames) > 0 || asked {
			return frames, err
		}
		select {
		case <-s.ready:
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Stream) take() (frames [][]byte, asked bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames, asked = s.queue, s.asked
	s.queue, s.bytes, s.asked = nil, 0, false
	return frames, asked, s.err
}

// probe makes Next return, so that the caller writes to the client.
func (s *Stream) probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	s.signal()
}

func (s *Stream) setBusy(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = since
}

// busySince returns since when the listener processes events. It is zero while
// the listener waits for more.
func (s *Stream) busySince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// push queues an event. It returns false if the queue is full.
func (s *Stream) push(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return true // already ended
	}
	n := len(s.queue)
	if n >= s.hub.cfg.MaxQueued || n > 0 && s.bytes+len(frame) > s.hub.cfg.MaxQueuedBytes {
		return false
	}
	s.queue, s.bytes = append(s.queue, frame), s.bytes+len(frame)
	s.signal()
	return true
}

// end ends the stream and drops its queue. The listener gets those events when
// it reconnects.
func (s *Stream) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err, s.queue = why, nil
	s.signal()
	if s.want.Broken != nil {
		s.want.Broken()
	}
}

// Err returns why the stream ended, or nil if it has not ended.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default: // already signalled
	}
}

// Close closes the stream. It may be called twice.
func (s *Stream) Close() {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	s.hub.forget(s)
}
