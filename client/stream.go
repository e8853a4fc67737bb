package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/ogen-go/ogen/sse"

	"github.com/postroom/postroom/gen"
)

// Stream says which events are followed. The zero value means all from now on.
type Stream struct {
	// InboxID leaves one inbox.
	InboxID string
	// Types leaves these types.
	Types []gen.EventType
	// LastEventID goes on after this event, for as long as the server remembers
	// it, 24 hours.
	LastEventID string
}

// streamTimes are the times of a stream, for tests to change.
type streamTimes struct {
	// silence is after how long without a word the line is taken for dead; the
	// server says something every 20 seconds.
	silence time.Duration
	// tries is how often in a row the stream is opened again without getting
	// anything, with pauses of up to longest: some 10 minutes.
	tries   int
	longest time.Duration
}

var defaultStreamTimes = streamTimes{silence: time.Minute, tries: 25, longest: 30 * time.Second}

// unknownEvent is the id of no event. A stream that goes on from it begins with a
// gap, and replays all that the server remembers.
const unknownEvent = "evt_0"

// Events ranges over what happens, in order, each event once, until ctx ends. A
// stream that breaks is opened again where it was; when the server does not
// remember that place any more, an event of type StreamGap comes first. The last
// pair is always an error: that of ctx, what the server refuses the stream with,
// or why it could not be reached for some 10 minutes.
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

// defaultRetry is the pause before a stream is opened again, unless the server
// says it.
const defaultRetry = 3 * time.Second

// errLeft is of a loop that was left.
var errLeft = errors.New("the loop was left")

// listener is a stream over all the times that it is opened.
type listener struct {
	client *Client
	want   Stream
	last   string        // id of the event that was read last
	began  bool          // it was opened once
	opened time.Time     // when that was, by the server's clock, if it says so
	quiet  bool          // what was before that is replayed, and not for the caller
	failed int           // tries in a row that did not open it
	retry  time.Duration // the pause that the server asks for
}

// goOn returns nil when the stream, which ended with err, is to be opened again,
// after a pause.
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

// listen opens the stream once and hands on its events. It ends with an error
// always.
func (l *listener) listen(ctx context.Context, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	res, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it has ended, or is of no use any more
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

var errSilent = errors.New("postroom: the stream of events went silent")

// open asks for the stream.
func (l *listener) open(ctx context.Context) (*http.Response, error) {
	p := gen.StreamEventsParams{Events: l.want.Types}
	setIf(l.want.InboxID, p.InboxID.SetTo)
	setIf(l.last, p.LastEventID.SetTo)
	if l.last == "" && l.began { // it broke before the first event
		p.LastEventID.SetTo(unknownEvent)
		l.quiet = !l.opened.IsZero()
	}
	answer, err := l.client.StreamEvents(ctx, p)
	if err != nil {
		return nil, err
	}
	raw, ok := answer.(*gen.StreamEventsOKRawTextEventStream)
	if !ok {
		return nil, fmt.Errorf("postroom: the stream of events was answered with %T", answer)
	}
	if !l.began {
		l.began = true
		l.opened, _ = http.ParseTime(raw.Response.Header.Get("Date")) // zero when it is not there
	}
	l.failed = 0
	return raw.Response, nil
}

// event reads the data of f. The result is false for an event that the caller
// does not get.
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
