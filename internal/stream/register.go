package stream

import (
	"context"
	"time"
)

// listened says whether anybody listens, or asks to.
func (h *Hub) listened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.joined) > 0 || len(h.asked) > 0
}

func (h *Hub) anyJoined() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.joined) > 0
}

// register counts a stream with its key. Only live streams count: when the key
// has no place left, the others are asked to write to their clients at once, so
// that those whose clients have gone are noticed, and one that has not read for
// a heartbeat makes room.
func (h *Hub) register(ctx context.Context, s *Stream) error {
	patience := time.NewTimer(h.cfg.PlaceWait)
	defer patience.Stop()
	for {
		left, err := h.tryRegister(s)
		if left == nil {
			return err
		}
		for _, other := range h.streamsOf(s.want.KeySeq) {
			other.probe()
		}
		select {
		case <-left:
		case <-patience.C:
			return ErrTooMany
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryRegister returns a channel that is closed when a stream leaves, if the key
// has no place now.
func (h *Hub) tryRegister(s *Stream) (left <-chan struct{}, err error) {
	replaced := h.notReading(s.want.KeySeq)
	if replaced != nil {
		h.end(ErrReplaced, replaced)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.stopped:
		return nil, ErrStopped
	case len(h.open[s.want.KeySeq]) >= h.cfg.MaxPerKey:
		return h.left, nil
	}
	add(h.open, s.want.KeySeq, s)
	return nil, nil
}

// notReading returns, for a key with no place left, the stream that has not read
// for the longest time, if that is at least a heartbeat.
func (h *Hub) notReading(key int64) *Stream {
	streams := h.streamsOf(key)
	if len(streams) < h.cfg.MaxPerKey {
		return nil
	}
	var oldest *Stream
	since := time.Now().Add(-h.cfg.Heartbeat)
	for _, s := range streams {
		if busy := s.busySince(); !busy.IsZero() && !busy.After(since) {
			oldest, since = s, busy
		}
	}
	return oldest
}

// forget takes a stream out of everything.
func (h *Hub) forget(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, isOpen := h.open[s.want.KeySeq][s]; !isOpen {
		return
	}
	remove(h.open, s.want.KeySeq, s)
	remove(h.joined, s.want.AccountID, s)
	close(h.left)
	h.left = make(chan struct{})
}

// ask returns up to where the log is settled at some moment after the call, and
// from that moment on hands events out to the stream, unless it is nil.
func (h *Hub) ask(ctx context.Context, s *Stream) (int64, error) {
	q := question{s, make(chan answer, 1)}
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return 0, ErrStopped
	}
	h.asked = append(h.asked, q)
	h.mu.Unlock()
	select {
	case h.kick <- struct{}{}:
	default: // it knows already
	}
	select {
	case a := <-q.answer:
		return a.settled, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (h *Hub) takeQuestions() []question {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.asked
	h.asked = nil
	return asked
}

func (h *Hub) putBack(asked []question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(asked, h.asked...)
}

// reply answers, and lets the stream join unless it has gone meanwhile.
func (h *Hub) reply(q question, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := q.stream; s != nil && a.err == nil {
		if _, isOpen := h.open[s.want.KeySeq][s]; isOpen {
			s.from = max(s.from, a.settled)
			add(h.joined, s.want.AccountID, s)
		}
	}
	q.answer <- a
}

func add(sets map[int64]map[*Stream]struct{}, key int64, s *Stream) {
	if sets[key] == nil {
		sets[key] = map[*Stream]struct{}{}
	}
	sets[key][s] = struct{}{}
}

func remove(sets map[int64]map[*Stream]struct{}, key int64, s *Stream) {
	delete(sets[key], s)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}
