package store

import "sync"

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
	topicWebhooks
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

// WakeWebhooks subscribes to newly due deliveries to webhook endpoints.
func (s *Store) WakeWebhooks() *Wake { return s.wake.subscribe(topic{kind: topicWebhooks}) }

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

// changed wakes the sleepers of this node for n changes and hints the others.
func (s *Store) changed(topics []topic, n int) {
	if len(topics) > 0 {
		s.wake.wakeUp(topics...)
	}
	s.engine.Wrote(n)
}

// wakeFollowed wakes the sleepers of this node for what another node changed.
func (s *Store) wakeFollowed(inboxes []int64) {
	topics := make([]topic, 0, 3+len(inboxes))
	topics = append(topics, topic{kind: topicQueue}, topic{kind: topicEvents}, topic{kind: topicWebhooks})
	for _, seq := range inboxes {
		topics = append(topics, topic{topicInbox, seq})
	}
	s.wake.wakeUp(topics...)
}
