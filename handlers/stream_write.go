package handlers

import (
	"net/http"
	"sync"
	"time"
)

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
