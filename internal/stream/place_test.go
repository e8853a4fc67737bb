package stream_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/stream"
)

// A client whose connection broke reconnects while its old stream is still
// busy. The new stream replaces the old one at once.
func TestReconnectTakesThePlaceOfABrokenStream(t *testing.T) {
	h := open(t, func(c *stream.Config) { c.MaxPerKey, c.PlaceWait = 2, patient })
	w := stream.Wanted{KeySeq: h.key.Seq, AccountID: h.in.AccountID}
	for range 20 {
		ctx, breakLine := context.WithCancel(t.Context())
		s, err := h.hub.Open(ctx, w)
		must(t, err)
		t.Cleanup(s.Close) // the server closes it late
		breakLine()
	}
}

// If a key has no free place, a new stream replaces the one that has not read
// for the longest time, but never one that reads.
func TestNewStreamReplacesTheOldestThatDoesNotRead(t *testing.T) {
	h := open(t, func(c *stream.Config) {
		c.MaxPerKey, c.Heartbeat, c.PlaceWait = 3, 50*time.Millisecond, time.Millisecond
	})
	var broken atomic.Int64
	stuck := h.open(t, func(w *stream.Wanted) { w.Broken = func() { broken.Add(1) } })
	stuckLater := h.open(t)
	reading, ctx := h.open(t), t.Context()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := reading.Next(ctx, time.Millisecond); err != nil {
				t.Errorf("the stream that reads ended: %v", err)
				return
			}
		}
	})
	h.openLate(t)
	if !errors.Is(stuck.Err(), stream.ErrReplaced) || broken.Load() != 1 || stuckLater.Err() != nil {
		t.Errorf("the first ended with %v, notified %d times; the second with %v", stuck.Err(), broken.Load(), stuckLater.Err())
	}
	h.openLate(t)
	wantEnd(t, stuckLater, stream.ErrReplaced)
	close(stop)
	readers.Wait()
}

// openLate opens a stream as soon as a place is free.
func (h *house) openLate(t *testing.T) {
	t.Helper()
	for late := time.Now().Add(patient); ; {
		s, err := h.hub.Open(t.Context(), stream.Wanted{KeySeq: h.key.Seq, AccountID: h.in.AccountID})
		if err == nil {
			t.Cleanup(s.Close)
			return
		}
		if !errors.Is(err, stream.ErrTooMany) || time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// A new stream without a free place makes the others write to their clients, so
// that the server notices disconnected clients at once.
func TestFullKeyProbesItsStreams(t *testing.T) {
	h := open(t, func(c *stream.Config) { c.MaxPerKey, c.PlaceWait = 1, patient })
	s := h.open(t)
	var probing sync.WaitGroup
	probing.Go(func() {
		frames, err := s.Next(t.Context(), patient)
		if err != nil || len(frames) != 0 {
			t.Errorf("probed with %d events, %v", len(frames), err)
		}
		s.Close() // the client has gone
	})
	h.open(t)
	probing.Wait()
}
