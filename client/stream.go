package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/ogen-go/ogen/sse"

	"github.com/postroom/postroom/gen"
)

// Stream selects events. The zero value selects all events from now on.
type Stream struct {
	// InboxID limits the events to one inbox.
	InboxID string
	// Types limits the events to these types.
	Types []gen.EventType
	// LastEventID resumes after this event, which the server remembers for 24
	// hours.
	LastEventID string
}

// streamTimes are the time limits of a stream. Tests change them.
type streamTimes struct {
	// silence is the time without data after which the connection counts as
	// broken. The server sends something every 20 seconds.
	silence time.Duration
	// tries limits the consecutive attempts to reconnect, with pauses of up to
	// longest: about 10 minutes in all.
	tries   int
	longest time.Duration
}

var defaultStreamTimes = streamTimes{silence: time.Minute, tries: 25, longest: 30 * time.Second}

// unknownEvent is an id that no event has. A stream that resumes from it begins
// with a gap and replays all events that the server remembers.
const unknownEvent = "evt_0"

// Events ranges over the events in order, each once, until ctx ends. A broken
// stream reconnects and resumes. If the server no longer knows the position, an
// event of type StreamGap comes first. The last pair is always an error: that
// of ctx, an error response of the server, or a connection error after about 10
// minutes of attempts.
func (c *Client) Events(ctx context.Context, s Stream) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		l := listener{client: c, want: s, last: s.LastEventID, retry: defaultRetry}
		for {
			err := l.listen(ctx, yield)
			if errors.Is(err, errLeft) {
				return
			}
			if err = l.goOn(ctx, err); err != nil {
				yield(Event{}, fmt.Errorf("follow events: %w", err))
				return
			}
		}
	}
}

// defaultRetry is the pause before a stream reconnects, unless the server sets
// it.
const defaultRetry = 3 * time.Second

// errLeft reports that the caller left the loop.
var errLeft = errors.New("the loop was left")

// listener reads a stream across reconnects.
type listener struct {
	client *Client
	want   Stream
	last   string        // id of the last event
	began  bool          // it has been open before
	opened time.Time     // time of the first open by the server's clock, if known
	quiet  bool          // skip replayed events from before opened
	failed int           // consecutive failed attempts
	retry  time.Duration // pause set by the server
}

// goOn pauses before a reconnect and returns nil, or an error if the stream
// must end. err is the error that ended the connection.
func (l *listener) goOn(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	refused, ok := errors.AsType[*Error](err)
	if errors.Is(err, errBadEvent) || !l.began || l.failed >= l.client.stream.tries || ok && !refused.Temporary() {
		return err
	}
	pause := l.retry
	if l.failed > 0 {
		pause, _ = pauseAfter(err, l.failed)
	}
	l.failed++
	return l.client.caller.sleep(ctx, min(pause, l.client.stream.longest))
}

// listen opens the stream once and yields its events. It always returns an
// error.
func (l *listener) listen(ctx context.Context, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // ended or no longer needed
	alive := time.AfterFunc(l.client.stream.silence, func() { cancel(errSilent) })
	defer alive.Stop()
	frames := newFrames(res.Body, l.retry, func() { alive.Reset(l.client.stream.silence) })
	for {
		f, err := frames.next()
		l.retry = frames.events.Retry()
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		} else if err != nil {
			return err
		}
		e, ok, err := l.event(f)
		if err != nil {
			return err
		}
		if f.ID != "" {
			l.last = f.ID
		}
		if ok && !yield(e, nil) {
			return errLeft
		}
	}
}

// EventLog ranges over the events that the server keeps, oldest first, and ends with
// the newest. It is for what a program missed; Events follows new ones. It begins
// at since, or with the oldest if since is zero, and ignores Stream.LastEventID.
func (c *Client) EventLog(ctx context.Context, s Stream, since time.Time) iter.Seq2[Event, error] {
	p := gen.ListEventsParams{Limit: gen.NewOptInt(100), Events: s.Types}
	setIf(s.InboxID, p.InboxID.SetTo)
	if !since.IsZero() {
		p.Since.SetTo(since)
	}
	return eachEvent(&p.Cursor, func() (io.ReadCloser, error) {
		switch res, err := c.ListEvents(ctx, p); res := res.(type) {
		case *gen.ListEventsOKRawApplicationJSON:
			return res.Response.Body, err
		default:
			return nil, cmp.Or(err, fmt.Errorf("postroom: unexpected response to the list of events: %T", res))
		}
	})
}

// EmailEvents ranges over what happened to an email, oldest first.
func (c *Client) EmailEvents(ctx context.Context, p gen.ListEmailEventsParams, options ...gen.RequestOption) iter.Seq2[Event, error] {
	return eachEvent(&p.Cursor, func() (io.ReadCloser, error) {
		switch res, err := c.ListEmailEvents(ctx, p, options...); res := res.(type) {
		case *gen.ListEmailEventsOKRawApplicationJSON:
			return res.Response.Body, err
		default:
			return nil, cmp.Or(err, fmt.Errorf("postroom: unexpected response to the events of an email: %T", res))
		}
	})
}

// eachEvent is each for lists of events, which fetch returns as JSON.
func eachEvent(cursor *gen.OptString, fetch func() (io.ReadCloser, error)) iter.Seq2[Event, error] {
	first := *cursor
	return func(yield func(Event, error) bool) {
		for *cursor = first; ; {
			var page struct {
				Data   []json.RawMessage `json:"data"`
				Cursor string            `json:"cursor"`
			}
			body, err := fetch()
			if err == nil {
				err = errors.Join(json.NewDecoder(body).Decode(&page), body.Close())
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, text := range page.Data {
				e, err := parseEvent(text)
				if !yield(e, err) || err != nil {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			cursor.SetTo(page.Cursor)
		}
	}
}

var errSilent = errors.New("postroom: the stream of events went silent")

// open requests the stream.
func (l *listener) open(ctx context.Context) (*http.Response, error) {
	p := gen.StreamEventsParams{Events: l.want.Types}
	setIf(l.want.InboxID, p.InboxID.SetTo)
	setIf(l.last, p.LastEventID.SetTo)
	if l.last == "" && l.began { // broken before the first event
		p.LastEventID.SetTo(unknownEvent)
		l.quiet = !l.opened.IsZero()
	}
	response, err := l.client.StreamEvents(ctx, p)
	if err != nil {
		return nil, err
	}
	raw, ok := response.(*gen.StreamEventsOKRawTextEventStream)
	if !ok {
		return nil, fmt.Errorf("postroom: unexpected response to the event stream: %T", response)
	}
	if !l.began {
		l.began = true
		l.opened, _ = http.ParseTime(raw.Response.Header.Get("Date")) // zero if missing
	}
	l.failed = 0
	return raw.Response, nil
}

// event parses the data of f. It returns false for an event to skip.
func (l *listener) event(f sse.Event) (Event, bool, error) {
	text := []byte(f.Data)
	if f.Type == StreamGap {
		var gap struct {
			ReplayedFrom time.Time `json:"replayed_from"`
		}
		err := json.Unmarshal(text, &gap)
		known := l.quiet && err == nil && !gap.ReplayedFrom.After(l.opened)
		return Event{Type: StreamGap, Data: text, JSON: text}, !known, nil
	}
	e, err := parseEvent(text)
	if l.quiet && e.CreatedAt.Before(l.opened) {
		return e, false, err
	}
	l.quiet = false
	return e, true, err
}
