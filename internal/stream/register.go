package stream

import (
	"context"
	"time"
)

// listened reports whether there is a live stream or a pending question.
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

// register adds a stream to its key's open streams. If the key has no free
// place, it makes the other streams write to their clients, so that
// disconnected clients are noticed. A stream that has not read for a heartbeat
// is replaced.
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

// tryRegister adds a stream if its key has a free place. Otherwise it returns a
// channel that is closed when a stream leaves.
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

// notReading returns, for a key without a free place, the stream that has not
// read for the longest time, if that is at least a heartbeat.
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

// forget removes a stream from the hub.
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

// ask returns the settled position of the log at some moment after the call. If
// s is not nil, it receives all events after that position.
func (h *Hub) ask(ctx context.Context, s *Stream) (int64, error) {
	q := question{s, make(chan result, 1)}
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return 0, ErrStopped
	}
	h.asked = append(h.asked, q)
	h.mu.Unlock()
	select {
	case h.kick <- struct{}{}:
	default: // already signalled
	}
	select {
	case a := <-q.result:
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

// reply resolves a question and joins its stream, unless the stream is closed.
func (h *Hub) reply(q question, a result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := q.stream; s != nil && a.err == nil {
		if _, isOpen := h.open[s.want.KeySeq][s]; isOpen {
			s.from = max(s.from, a.settled)
			add(h.joined, s.want.AccountID, s)
		}
	}
	q.result <- a
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
