package stream

import (
	"context"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

// renderers is the number of accounts whose events are rendered concurrently.
const renderers = 8

// feed renders the events of one account in order and sends them to its
// streams. Feeds of different accounts run concurrently. A feed exists only
// while it has events. The hub's lock protects all its fields.
type feed struct {
	account int64
	pending []wanted // next events to send
	last    int64    // the last event added to pending
	// behind is set if more than Config.MaxPending events wait. The feed then
	// reads the events after last, up to behind, from the log.
	behind int64
}

// wanted is an event and the streams that want it.
type wanted struct {
	event  store.Event
	takers []*Stream
}

// give adds an event to the feed of its account.
func (h *Hub) give(ctx context.Context, w wanted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	account := w.event.AccountID
	f := h.feeds[account]
	if f == nil {
		f = &feed{account: account}
		h.feeds[account] = f
		h.feeding.Go(func() { h.feed(ctx, f) })
	}
	if f.behind > 0 || len(f.pending) >= h.cfg.MaxPending {
		f.behind = w.event.Seq
		return
	}
	f.pending, f.last = append(f.pending, w), w.event.Seq
}

// dropFeeds discards all pending events.
func (h *Hub) dropFeeds() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.feeds {
		f.pending, f.behind = nil, 0
	}
	clear(h.feeds)
}

// feed sends events until none are left or ctx ends. It waits while the
// database is unavailable.
func (h *Hub) feed(ctx context.Context, f *feed) {
	failing := false
	for ctx.Err() == nil {
		part, more, err := h.nextPart(ctx, f)
		for len(part) > 0 && err == nil && ctx.Err() == nil {
			var n int
			n, err = h.handOutPart(ctx, part)
			if part = part[n:]; err != nil {
				h.giveBack(f, part)
			}
		}
		if err == nil && !more {
			return
		}
		if err != nil && !failing && ctx.Err() == nil {
			h.cfg.Log.WarnContext(ctx, "the streams of an account wait for the database", "error", err)
		}
		if failing = err != nil; failing {
			work.Pause(ctx, pollEvery/4, nil)
		}
	}
}

// nextPart returns the next events to send. If there are none, it removes the
// feed and more is false.
func (h *Hub) nextPart(ctx context.Context, f *feed) (part []wanted, more bool, err error) {
	h.mu.Lock()
	n := min(len(f.pending), maxPart)
	part, f.pending = f.pending[:n:n], f.pending[n:]
	after, upTo := f.last, f.behind
	if n == 0 && upTo == 0 {
		if h.feeds[f.account] == f {
			delete(h.feeds, f.account)
		}
		h.mu.Unlock()
		return nil, false, nil
	}
	h.mu.Unlock()
	if n == 0 {
		err = h.catchUp(ctx, f, after, upTo)
	}
	return part, true, err
}

// catchUp reads a page of the events that did not fit in memory.
func (h *Hub) catchUp(ctx context.Context, f *feed, after, upTo int64) error {
	events, err := h.cfg.Store.EventsOf(ctx, f.account, after, upTo, pageSize)
	if err != nil {
		return err
	}
	page := make([]wanted, 0, len(events))
	for _, e := range events {
		if takers := h.takers(e); len(takers) > 0 {
			page = append(page, wanted{e, takers})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.behind == 0 { // the feed was dropped
		return nil
	}
	f.pending, f.last = page, upTo
	switch {
	case len(events) == pageSize:
		f.last = events[pageSize-1].Seq
	case f.behind == upTo:
		f.behind = 0
	}
	return nil
}

// giveBack returns unsent events to a feed, unless it was dropped.
func (h *Hub) giveBack(f *feed, part []wanted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[f.account] == f {
		f.pending = append(part[:len(part):len(part)], f.pending...)
	}
}

// handOutPart renders events and sends them to the streams that want them. It
// returns the number of events sent.
func (h *Hub) handOutPart(ctx context.Context, part []wanted) (n int, err error) {
	select {
	case h.rendering <- struct{}{}:
		defer func() { <-h.rendering }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	events := make([]store.Event, len(part))
	for i, w := range part {
		events[i] = w.event
	}
	for i, r := range h.cfg.Render(ctx, events) {
		frame, err := h.usable(ctx, r)
		if err != nil {
			return i, err
		}
		for _, s := range part[i].takers {
			if frame != nil && !s.push(frame) {
				h.end(ErrSlow, s)
			}
		}
	}
	return len(part), nil
}
