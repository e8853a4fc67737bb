package faults_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// streamsPerKey is how many streams of events a key may have open on a node.
const streamsPerKey = 10

// apiKey is a key with its secret.
type apiKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

func (in *installation) newKeys(t *testing.T, n int) []apiKey {
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

// TestSlowStreamReaderIsDisconnectedAndMissesNothing opens a stream and does not read
// from it while large messages arrive. When its buffer is full, the server closes it.
// Another stream gets every event meanwhile. When the slow reader reconnects, it gets
// the events that it missed. Row H16 of docs/testing.md.
func TestSlowStreamReaderIsDisconnectedAndMissesNothing(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.start()
		r := &receiving{in: in, size: 150 << 10, book: newLedger("slow"), boxes: in.createInboxes("slow")}
		slow, good := in.listenSlowly(t), in.listenSlowly(t)
		sent := 0
		for ended := false; !ended; sent++ {
			if sent == 200 { // 30 MB, more than the service may buffer
				t.Fatal("a stream that no client reads is still open")
			}
			id := r.book.next()
			r.deliver(t, id)
			if e, err := good.next(); err != nil || e.Data.Subject != id {
				t.Fatalf("beside a stream that no client reads, another stream got %+v, %v", e, err)
			}
			ended = strings.Contains(in.logTail(), "the listener does not keep up")
		}
		var heard []streamed
		for {
			e, err := slow.next()
			if err != nil {
				if errors.Is(err, io.EOF) && len(heard) == sent {
					t.Error("the stream was not closed")
				}
				break
			}
			heard = append(heard, e)
		}
		early := len(heard)
		if early == 0 || early == sent {
			t.Fatalf("%d of %d events were in the closed stream", early, sent)
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
		t.Logf("closed after %d events of 150 KB, %d of them had arrived; 0 lost, 0 repeated", sent, early)
	})
}

func (in *installation) listenSlowly(t *testing.T) *eventStream {
	t.Helper()
	s, err := in.current().listen(t.Context(), firstKey, "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}
