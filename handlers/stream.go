package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
)

// StreamEvents implements GET /v1/events/stream. Once the response has begun,
// it cannot report an error: the stream ends, and the client reconnects with
// the id of its last event.
func (a *API) StreamEvents(ctx context.Context, p gen.StreamEventsParams, w http.ResponseWriter) error {
	want, missed, err := a.wantedEvents(ctx, p)
	if err != nil {
		return err
	}
	out := newEventWriter(w)
	want.Broken = out.hurry
	s, err := a.cfg.Streams.Open(ctx, want)
	if err != nil {
		return streamError(err)
	}
	defer s.Close()
	if err := out.begin(missed); err != nil || httpapi.Request(ctx).Method == http.MethodHead {
		return nil //nolint:nilerr // the client has gone, or wants no more
	}
	a.copyEvents(ctx, s, out)
	if why := s.Err(); errors.Is(why, stream.ErrSlow) || errors.Is(why, stream.ErrRevoked) || errors.Is(why, stream.ErrReplaced) {
		a.log.InfoContext(ctx, "ended a stream of events", "reason", why.Error(), "key_id", httpapi.Caller(ctx).ID, "request_id", httpapi.RequestID(ctx))
	}
	return nil
}

// filterEvents sets the inboxes, if the client names one, and the types of wanted events.
func (a *API) filterEvents(ctx context.Context, inbox gen.OptString, names []gen.EventType, inboxes *[]string, types *[]store.EventType) error {
	if id, ok := inbox.Get(); ok {
		if _, err := a.filteredInbox(ctx, id); err != nil {
			return err
		}
		*inboxes = []string{id}
	}
	for _, name := range names {
		*types = append(*types, store.EventType(name))
	}
	return nil
}

// ListEvents implements GET /v1/events. It writes the page itself, because events
// are rendered as JSON.
func (a *API) ListEvents(ctx context.Context, p gen.ListEventsParams, w http.ResponseWriter) error {
	k := httpapi.Caller(ctx)
	f := store.EventFilter{InboxIDs: httpapi.Visible(k), Since: sinceOf(p.Since)}
	if err := a.filterEvents(ctx, p.InboxID, p.Events, &f.InboxIDs, &f.Types); err != nil {
		return err
	}
	l, err := a.store.ListEvents(ctx, k.AccountID, f, pageOf(p.Limit, p.Cursor))
	if err != nil {
		return err
	}
	return a.writeEvents(ctx, w, l)
}

// writeEvents writes a page of events.
func (a *API) writeEvents(ctx context.Context, w http.ResponseWriter, l store.List[store.Event]) error {
	mail, err := readMail(ctx, a.store, l.Rows)
	if err != nil {
		return err
	}
	page := struct {
		Data    []json.RawMessage `json:"data"`
		HasMore bool              `json:"has_more"`
		Cursor  gen.NilString     `json:"cursor"`
	}{[]json.RawMessage{}, l.Cursor != "", emptyIsNull(l.Cursor)}
	for _, e := range l.Rows {
		data, err := tellOf(ctx, mail, e)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		page.Data = append(page.Data, data)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(page)
}

// copyEvents returns when the stream has ended or the client has disconnected.
func (a *API) copyEvents(ctx context.Context, s *stream.Stream, out *eventWriter) {
	for {
		frames, err := s.Next(ctx, cmp.Or(a.cfg.StreamPing, streamPing))
		if err == nil && len(frames) == 0 {
			frames = [][]byte{pingFrame}
		}
		if err != nil || out.write(frames...) != nil {
			return
		}
	}
}

// streamError converts an error of Open to the one that the caller sees.
func streamError(err error) error {
	switch {
	case errors.Is(err, stream.ErrTooMany):
		return &httpapi.Error{
			Status: http.StatusTooManyRequests, Code: gen.ErrorCodeRateLimited, RetryAfter: streamRetryAfter,
			Message: "this key has 10 live streams on this node, the most it may have; close one, or use another key",
		}
	case errors.Is(err, stream.ErrStopped):
		return httpapi.ErrUnavailable
	}
	return err
}

// wantedEvents reads the request. missed is not nil if some events after the
// one that the client names cannot be replayed.
func (a *API) wantedEvents(ctx context.Context, p gen.StreamEventsParams) (want stream.Wanted, missed *streamGap, err error) {
	k := httpapi.Caller(ctx)
	want = stream.Wanted{KeySeq: k.Seq, AccountID: k.AccountID, Inboxes: httpapi.Visible(k)}
	if err := a.filterEvents(ctx, p.InboxID, p.Events, &want.Inboxes, &want.Types); err != nil {
		return want, nil, err
	}
	if id := p.LastEventID.Or(""); id != "" {
		missed, err = a.resume(ctx, &want, id)
	}
	return want, missed, err
}

// resume sets the position to replay from: that of the event or, if that is
// gone or too old, that of 24 hours ago.
func (a *API) resume(ctx context.Context, want *stream.Wanted, id string) (*streamGap, error) {
	oldest := a.now().Add(-store.StreamTTL)
	seq, at, err := a.store.EventPlace(ctx, want.AccountID, id)
	if err == nil && !at.Before(oldest) {
		want.After = &seq
		return nil, nil //nolint:nilnil // no gap, no error
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	seq, err = a.store.EventsFrom(ctx, oldest)
	want.After = &seq
	return &streamGap{Object: "stream_gap", LastEventID: id, ReplayedFrom: oldest.UTC().Format(eventTime)}, err
}

// streamGap tells the client that events may be missing before the next ones.
type streamGap struct {
	Object       string `json:"object"`
	LastEventID  string `json:"last_event_id"`
	ReplayedFrom string `json:"replayed_from"`
}

// frame returns one event of a stream (HTML Living Standard, 9.2.6).
func frame(id, event string, data []byte) []byte {
	b := make([]byte, 0, len("id: \nevent: \ndata: \n\n")+len(id)+len(event)+len(data))
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), event...), '\n')
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

func gapFrame(g *streamGap) ([]byte, error) {
	data, err := json.Marshal(g)
	return frame("", "stream.gap", data), err
}

var (
	streamHead = []byte("retry: 3000\n\n")
	pingFrame  = []byte(": ping\n\n")
)

// eventWriter writes a stream of server-sent events.
type eventWriter struct {
	w      http.ResponseWriter
	socket *http.ResponseController

	mu      sync.Mutex
	hurried bool
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, socket: http.NewResponseController(w)}
}

// begin sends the headers and the first frames.
func (o *eventWriter) begin(missed *streamGap) error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // turns off buffering in nginx
	o.w.WriteHeader(http.StatusOK)
	if missed == nil {
		return o.write(streamHead)
	}
	gap, err := gapFrame(missed)
	if err != nil {
		return err
	}
	return o.write(streamHead, gap)
}

// write sends and flushes the frames.
func (o *eventWriter) write(frames ...[]byte) error {
	for _, f := range frames {
		o.extend()
		if _, err := o.w.Write(f); err != nil {
			return err
		}
	}
	return o.socket.Flush()
}

// extend sets the deadline for the next frame, by the wall clock.
func (o *eventWriter) extend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.hurried {
		_ = o.socket.SetWriteDeadline(time.Now().Add(frameTimeout)) // not all connections support deadlines, in tests
	}
}

// hurry shortens the deadline of a client that accepts no data, so that it does
// not delay the end of the stream. It is safe to call while another goroutine
// writes.
func (o *eventWriter) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	_ = o.socket.SetWriteDeadline(time.Now().Add(hurryTimeout)) // as above
}
