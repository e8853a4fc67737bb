package store

import (
	"context"
	"sync"
	"time"
)

// topic names what a sleeper waits for.
type topic struct {
	kind topicKind
	seq  int64 // of the inbox, for topicInbox
}

type topicKind uint8

const (
	topicInbox topicKind = iota
	topicQueue
	topicEvents
)

// hub wakes goroutines of this process. A wake-up carries no data: who is
// woken looks into the database, so that nothing can be lost on the way.
type hub struct {
	mu     sync.Mutex
	closed bool
	subs   map[topic]map[*Wake]struct{}
}

func newHub() *hub { return &hub{subs: map[topic]map[*Wake]struct{}{}} }

// Wake is one subscription. C receives after each change; many changes may
// come as one. Stop must be called.
type Wake struct {
	C     <-chan struct{}
	c     chan struct{}
	hub   *hub
	topic topic
}

// WakeInbox subscribes to changes of an inbox's messages. Subscribe first, then
// look, then sleep on C, then look again.
func (s *Store) WakeInbox(inboxSeq int64) *Wake {
	return s.wake.subscribe(topic{topicInbox, inboxSeq})
}

// WakeQueue subscribes to newly due recipients.
func (s *Store) WakeQueue() *Wake { return s.wake.subscribe(topic{kind: topicQueue}) }

// WakeEvents subscribes to new events.
func (s *Store) WakeEvents() *Wake { return s.wake.subscribe(topic{kind: topicEvents}) }

func (h *hub) subscribe(t topic) *Wake {
	c := make(chan struct{}, 1)
	w := &Wake{C: c, c: c, hub: h, topic: t}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(c)
		return w
	}
	if h.subs[t] == nil {
		h.subs[t] = map[*Wake]struct{}{}
	}
	h.subs[t][w] = struct{}{}
	return w
}

// Stop ends the subscription.
func (w *Wake) Stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	subs := w.hub.subs[w.topic]
	delete(subs, w)
	if len(subs) == 0 {
		delete(w.hub.subs, w.topic)
	}
}

func (h *hub) wakeUp(topics ...topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for w := range h.subs[t] {
			w.signal()
		}
	}
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.subs {
		for w := range subs {
			w.signal()
		}
	}
}

func (w *Wake) signal() {
	select {
	case w.c <- struct{}{}:
	default: // a wake-up is waiting already
	}
}

// close ends all subscriptions: every C is closed.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, subs := range h.subs {
		for w := range subs {
			close(w.c)
		}
	}
	h.subs = map[topic]map[*Wake]struct{}{}
}

// changed wakes the sleepers of this node and hints the others.
func (s *Store) changed(topics []topic) {
	if len(topics) == 0 {
		return
	}
	s.wake.wakeUp(topics...)
	s.dialect.notify()
}

const (
	followEvery = time.Second
	// followBack is how far behind the newest event the follower keeps looking:
	// a number taken before its transaction commits can appear late.
	followBack = 10 * time.Second
)

// followOthers wakes the sleepers of this node for what other nodes changed:
// on their hint, and every second whatever happens to the hints.
func (s *Store) followOthers(ctx context.Context) {
	if s.dialect.committers() < 2 { // one process owns the file
		return
	}
	hint := make(chan struct{}, 1)
	s.running.Go(func() {
		err := s.dialect.listen(ctx, func() {
			select {
			case hint <- struct{}{}:
			default:
			}
		})
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "no hints from other nodes, only the poll", "error", err)
		}
	})
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	f := follower{store: s}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hint:
		case <-tick.C:
		}
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "look for events of other nodes", "error", err)
		}
	}
}

// follower reads the events that it has not seen and wakes their inboxes.
type follower struct {
	store *Store
	from  int64      // all events up to here are seen and settled
	marks []seenMark // newest events at moments since
	last  int64      // newest event at the last look
}

type seenMark struct {
	at  time.Time
	seq int64
}

func (f *follower) look(ctx context.Context) error {
	const (
		newest = `SELECT coalesce(max(seq), 0) FROM events`
		since  = `SELECT DISTINCT coalesce(inbox_seq, 0) FROM events WHERE seq > $1 ORDER BY 1 LIMIT 10000`
	)
	s := f.store
	var last int64
	if err := s.read.GetContext(ctx, &last, newest); err != nil {
		return err
	}
	if f.from == 0 && f.last == 0 { // first look: start here
		f.from = last
	}
	now := s.now()
	if last != f.last {
		f.marks = append(f.marks, seenMark{now, last})
		f.last = last
	}
	for len(f.marks) > 0 && now.Sub(f.marks[0].at) > followBack {
		f.from, f.marks = f.marks[0].seq, f.marks[1:]
	}
	if len(f.marks) == 0 {
		return nil
	}
	var inboxes []int64
	if err := s.read.SelectContext(ctx, &inboxes, since, f.from); err != nil {
		return err
	}
	if len(inboxes) == 10000 {
		s.wake.wakeAll()
		return nil
	}
	topics := []topic{{kind: topicQueue}, {kind: topicEvents}}
	for _, seq := range inboxes {
		topics = append(topics, topic{topicInbox, seq})
	}
	s.wake.wakeUp(topics...)
	return nil
}
