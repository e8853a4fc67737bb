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

// begin sends the head of the answer.
func (o *eventWriter) begin(missed *streamGap) error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // asks nginx to hand on what it gets
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

// write sends the frames, and hands them on at once.
func (o *eventWriter) write(frames ...[]byte) error {
	for _, f := range frames {
		o.extend()
		if _, err := o.w.Write(f); err != nil {
			return err
		}
	}
	return o.socket.Flush()
}

// extend gives the client its time for the next frame. The deadline is the
// socket's, and so by the wall clock.
func (o *eventWriter) extend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.hurried {
		_ = o.socket.SetWriteDeadline(time.Now().Add(frameTimeout)) // not all connections can, in tests
	}
}

// hurry lets a client that accepts nothing no longer hold up what has ended. It
// may be called while another goroutine writes.
func (o *eventWriter) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	_ = o.socket.SetWriteDeadline(time.Now().Add(hurryTimeout)) // as above
}
