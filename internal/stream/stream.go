package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// What is replayed is made in parts of firstPart to maxPart events.
const (
	firstPart = 4
	maxPart   = 32
)

// Wanted is what a listener wants to hear.
type Wanted struct {
	KeySeq, AccountID int64
	// Inboxes are the ids of the only inboxes whose events are wanted; nil means
	// all there is, also what is of no inbox.
	Inboxes []string
	// Types are the only types wanted; nil means all.
	Types []store.EventType
	// After is the place in the log of the event that the listener had last; nil
	// means that it wants what happens from now on.
	After *int64
	// Broken is called, once, when the stream ends while the listener may be busy
	// with what it was given. It must not block.
	Broken func()
}

// wants says whether an event of the account is wanted. Events that
// are for Postroom itself, or for one webhook endpoint, are not.
func (w *Wanted) wants(e store.Event) bool {
	switch {
	case e.Type.Internal():
		return false
	case w.Inboxes != nil && (e.InboxID == nil || !slices.Contains(w.Inboxes, *e.InboxID)):
		return false
	}
	return w.Types == nil || slices.Contains(w.Types, e.Type)
}

// Stream is one listener. Next and Close are for one goroutine.
type Stream struct {
	hub  *Hub
	want Wanted

	at, upTo int64         // what is yet to be read from the log
	page     []store.Event // what was read
	part     int           // how much of it is made next
	joined   bool          // what comes after upTo is queued
	from     int64         // no event up to here is queued; of the hub's lock

	mu    sync.Mutex
	queue [][]byte
	bytes int
	err   error         // why it has ended
	busy  time.Time     // since when the listener reads what Next returned; zero during Next
	asked bool          // Next is to return at once, also without events
	ready chan struct{} // there is something in queue, err or asked; holds one

	stopWatch func() bool // stops waiting for the end of the listener's context
}

// Open begins to listen: what happens after it returns is heard. The stream must
// be closed; it gives up its place when ctx ends, too. ErrTooMany when the key
// has as many live streams as it may, ErrStopped when the service stops, and
// what the store returns.
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

// join lets what happens be queued, and what happened since the last look be
// read from the log.
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

// Next returns the next events, or none when there are none for the time of
// wait, or when the hub wants to know whether the listener is still there. It
// returns why the stream has ended, after which there is nothing more.
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

// replay makes a part of what the listener missed: few events at first, since
// some come and go again at once.
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

// readPage reads what is wanted of the next events in the log.
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

// queued waits for what is handed out.
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

// probe makes Next return, so that the listener is written to.
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

// busySince returns since when the listener reads what it was given. It is zero
// while the listener waits for more.
func (s *Stream) busySince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.busy
}

// push queues an event, and says whether there was room for it.
func (s *Stream) push(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return true // somebody was faster
	}
	n := len(s.queue)
	if n >= s.hub.cfg.MaxQueued || n > 0 && s.bytes+len(frame) > s.hub.cfg.MaxQueuedBytes {
		return false
	}
	s.queue, s.bytes = append(s.queue, frame), s.bytes+len(frame)
	s.signal()
	return true
}

// end ends the stream. What is queued is dropped: the listener gets it when it
// comes back.
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

// Err is why the stream has ended, and nil while it has not.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default: // it is signalled already
	}
}

// Close stops listening. It may be called twice.
func (s *Stream) Close() {
	if s.stopWatch != nil {
		s.stopWatch()
	}
	s.hub.forget(s)
}
