package client

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ogen-go/ogen/sse"
)

const (
	// maxFrame limits one event. The server cuts event bodies at 256 KB.
	maxFrame = 4 << 20
	// maxUnread limits how much is read without an event. It allows several
	// years of the comments that keep the stream open.
	maxUnread = 16 * maxFrame
)

var errFrame = fmt.Errorf("%w: it is longer than %d MB", errBadEvent, maxFrame>>20)

// frames reads server-sent events.
type frames struct {
	body   io.Reader
	heard  func() // called whenever bytes arrive, comments included
	unread int    // bytes since the last event
	events *sse.Decoder
}

func newFrames(body io.Reader, retry time.Duration, heard func()) *frames {
	f := &frames{body: body, heard: heard}
	f.events = sse.NewDecoder(f, 0, maxFrame, "", &retry)
	return f
}

// next returns the next event. At the end of the stream the error is io.EOF.
func (f *frames) next() (sse.Event, error) {
	e, err := f.events.Decode()
	f.unread = 0
	if errors.Is(err, sse.ErrEventTooLarge) {
		return sse.Event{}, errFrame
	}
	return e, err
}

// Read implements io.Reader for the decoder.
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.body.Read(p)
	if n > 0 {
		f.heard()
	}
	if f.unread += n; f.unread > maxUnread {
		return n, sse.ErrEventTooLarge
	}
	return n, err
}
