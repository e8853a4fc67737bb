package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver is the HTTP server of the endpoints. It counts posts and discards them.
type receiver struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	gate chan struct{} // closed while posts get a response
	left int           // posts still expected
	last time.Time
	done chan struct{} // closed when left is 0
}

func newReceiver(ctx context.Context) (*receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + l.Addr().String(), gate: make(chan struct{}), done: make(chan struct{})}
	close(r.gate)
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(l) }() // ends with close
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // the sender retries a broken post
	now := time.Now()
	r.mu.Lock()
	gate := r.gate
	r.left--
	r.last = now
	if r.left == 0 {
		close(r.done)
	}
	r.mu.Unlock()
	<-gate
}

// begin expects that number of posts from now on.
func (r *receiver) begin(posts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.done = posts, make(chan struct{})
}

// block delays the responses until unblock.
func (r *receiver) block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = make(chan struct{})
}

func (r *receiver) unblock() { close(r.gate) }

// await waits until all posts have arrived.
func (r *receiver) await(ctx context.Context) error {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	const mostWait = 2 * time.Minute
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(mostWait):
		r.mu.Lock()
		defer r.mu.Unlock()
		return fmt.Errorf("%d posts did not arrive within %v", r.left, mostWait)
	}
}

// lastPost returns when the last post arrived.
func (r *receiver) lastPost() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}
