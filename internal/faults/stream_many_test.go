package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// streamsPerKey is how many streams of events a key may have open on a node.
const streamsPerKey = 10

// TestH16ManyStreams opens a stream for each of many inboxes, and then sends one
// mail to each. Every stream tells of its own.
func TestH16ManyStreams(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		in.start()
		m := &manyWaits{in: in, began: map[string]time.Time{}}
		boxes := m.makeInboxes(t, pick(100, 1000))
		keys := in.newKeys(t, (len(boxes)+streamsPerKey-1)/streamsPerKey)
		var open atomic.Int64
		working, ctx := errgroup.WithContext(t.Context())
		for i, box := range boxes {
			working.Go(func() error {
				s, err := in.current().listen(ctx, keys[i/streamsPerKey].Key, "?inbox_id="+box.ID, "")
				if err != nil {
					return err
				}
				defer s.close()
				defer context.AfterFunc(ctx, s.close)()
				open.Add(1)
				e, err := s.next()
				if err != nil || e.InboxID != box.ID || e.Data.Subject != box.Name {
					return fmt.Errorf("the stream of %s told of %+v, %w", box.Name, e, err)
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				m.answered = append(m.answered, max(0, time.Since(m.began[box.ID])))
				return nil
			})
		}
		eventually(t, "all streams are open", func() bool { return open.Load() == int64(len(boxes)) || ctx.Err() != nil })
		for i := range clients {
			working.Go(func() error { return m.send(ctx, boxes, i) })
		}
		if err := working.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d streams at once, each told of its own mail, %s of the beginning of that", len(boxes), spread(m.answered))
	})
}

// apiKey is a key with its secret.
type apiKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

func (in *install) newKeys(t *testing.T, n int) []apiKey {
	t.Helper()
	api := in.current().caller()
	defer api.close()
	keys := make([]apiKey, n)
	for i := range keys {
		if err := api.call(t.Context(), http.StatusCreated, &keys[i], http.MethodPost, "/v1/keys", map[string]any{"name": fmt.Sprintf("stream %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// TestH16SlowReader opens a stream and reads nothing of it while large mail comes
// in, until what may wait for it is full: it is hung up on, another stream hears
// of everything meanwhile, and when it comes back it has missed nothing.
func TestH16SlowReader(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		in.start()
		r := &receiving{in: in, size: 150 << 10, book: newLedger("slow"), boxes: in.createInboxes("slow")}
		slow, good := in.listenSlowly(t), in.listenSlowly(t)
		sent := 0
		for ended := false; !ended; sent++ {
			if sent == 200 { // 30 MB, and more than that may not wait anywhere
				t.Fatal("a stream that nobody reads is still open")
			}
			id := r.book.next()
			r.deliver(t, id)
			if e, err := good.next(); err != nil || e.Data.Subject != id {
				t.Fatalf("beside a stream that nobody reads another told of %+v, %v", e, err)
			}
			ended = strings.Contains(in.logTail(), "the listener does not keep up")
		}
		var heard []streamed
		for {
			e, err := slow.next()
			if err != nil {
				if errors.Is(err, io.EOF) && len(heard) == sent {
					t.Error("the stream was not cut off")
				}
				break
			}
			heard = append(heard, e)
		}
		early := len(heard)
		if early == 0 || early == sent {
			t.Fatalf("%d of %d events were in the stream that was hung up on", early, sent)
		}
		again, err := in.current().listen(t.Context(), firstKey, "", heard[early-1].ID)
		if err != nil {
			t.Fatal(err)
		}
		defer again.close()
		for len(heard) < sent {
			e, err := again.next()
			if err != nil {
				t.Fatal(err)
			}
			heard = append(heard, e)
		}
		for i, e := range heard {
			if want := fmt.Sprintf("slow-%06d-end", i+1); e.Data.Subject != want {
				t.Fatalf("event %d is of %s, want %s", i+1, e.Data.Subject, want)
			}
		}
		t.Logf("hung up on after %d events of 150 KB, of which %d had arrived; 0 lost, 0 repeated", sent, early)
	})
}

func (in *install) listenSlowly(t *testing.T) *eventStream {
	t.Helper()
	s, err := in.current().listen(t.Context(), firstKey, "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}
