package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// opened is the time at which the test streams first open.
const opened = "Fri, 02 Jan 2026 03:04:05 GMT"

// eventAt returns a stream event created some seconds after opened.
func eventAt(n, seconds int) string {
	at := time.Date(2026, 1, 2, 3, 4, 5+seconds, 0, time.UTC).Format(time.RFC3339)
	return fmt.Sprintf("id: evt_%d\nevent: message.received\ndata: {\"id\":\"evt_%d\",\"type\":\"message.received\",\"created_at\":\"%s\",\"inbox_id\":null,\"data\":{}}\n\n", n, n, at)
}

// streamed writes the text and then breaks the stream.
func streamed(text string) http.HandlerFunc {
	return hangUp("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nDate: " + opened + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n", len(text), text))
}

const gapFrom = "event: stream.gap\ndata: {\"object\":\"stream_gap\",\"last_event_id\":\"evt_0\",\"replayed_from\":\"%s\"}\n\n"

func TestStreamResumesWhereItBroke(t *testing.T) {
	t.Parallel()
	early, late := fmt.Sprintf(gapFrom, "2026-01-01T03:04:05.000Z"), fmt.Sprintf(gapFrom, "2026-01-03T00:00:00.000Z")
	end := refusal(401, ErrUnauthorized)
	tests := []struct {
		name  string
		given Stream
		lines []http.HandlerFunc
		got   []string // ids, or types
		asked []string // Last-Event-ID
	}{
		{
			"after an event",
			Stream{},
			[]http.HandlerFunc{streamed("retry: 3000\n\n" + eventAt(1, 1) + ": ping\n\n" + eventAt(2, 2)), streamed(eventAt(3, 3)), end},
			[]string{"evt_1", "evt_2", "evt_3"},
			[]string{"", "evt_2", "evt_3"},
		},
		{
			"in the middle of an event",
			Stream{},
			[]http.HandlerFunc{streamed(eventAt(1, 1) + eventAt(2, 2)[:40]), streamed(eventAt(2, 2)), end},
			[]string{"evt_1", "evt_2"},
			[]string{"", "evt_1", "evt_2"},
		},
		{
			"where the caller was",
			Stream{LastEventID: "evt_7"},
			[]http.HandlerFunc{streamed(""), streamed(eventAt(8, -9)), end},
			[]string{"evt_8"},
			[]string{"evt_7", "evt_7", "evt_8"},
		},
		{
			"before the first event, without those from before",
			Stream{},
			[]http.HandlerFunc{streamed(": ping\n\n"), streamed(early + eventAt(1, -5)), streamed(eventAt(2, -1) + eventAt(3, 0)), streamed(eventAt(4, 1)), end},
			[]string{"evt_3", "evt_4"},
			[]string{"", "evt_0", "evt_1", "evt_3", "evt_4"},
		},
		{
			"with a gap that is one",
			Stream{},
			[]http.HandlerFunc{streamed(""), streamed(late + eventAt(1, 99)), end},
			[]string{"stream.gap", "evt_1"},
			[]string{"", "evt_0", "evt_1"},
		},
		{
			"with a gap, where it was is not known",
			Stream{LastEventID: "evt_old"},
			[]http.HandlerFunc{streamed(early + eventAt(1, -99)), end},
			[]string{"stream.gap", "evt_1"},
			[]string{"evt_old", "evt_1"},
		},
		{
			"while the server is unreachable",
			Stream{},
			[]http.HandlerFunc{streamed(eventAt(1, 1)), hangUp(""), hangUp(""), hangUp(""), hangUp(""), refusal(503, ErrUnavailable), streamed(eventAt(2, 2)), end},
			[]string{"evt_1", "evt_2"},
			[]string{"", "evt_1", "evt_1", "evt_1", "evt_1", "evt_1", "evt_1", "evt_2"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, tt.lines...)
			c, _ := newTestClient(t, s.URL)
			var got, asked []string
			var failed error
			for e, err := range c.Events(t.Context(), tt.given) {
				switch failed = err; {
				case err != nil:
				case e.ID == "":
					got = append(got, e.Type)
				default:
					got = append(got, e.ID)
				}
			}
			for _, r := range s.requests() {
				asked = append(asked, r.Header.Get("Last-Event-ID"))
			}
			if d := cmp.Diff([][]string{tt.got, tt.asked}, [][]string{got, asked}); d != "" || !errors.Is(failed, ErrUnauthorized) {
				t.Errorf("%v: -want +got:\n%s", failed, d)
			}
		})
	}
}

// Errors that end a stream.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []http.HandlerFunc
		want  string
		naps  int
	}{
		{"a refused request", []http.HandlerFunc{refusal(404, ErrNotFound)}, "not_found", 0},
		{"no server", []http.HandlerFunc{hangUp(""), hangUp(""), hangUp(""), hangUp("")}, "follow events", 3},
		{"a server that went away", []http.HandlerFunc{streamed(eventAt(1, 1)), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp(""), hangUp("")}, "follow events", 1 + 3 + 1 + 3 + 1 + 3},
		{"data that is not an event", []http.HandlerFunc{streamed("data: {\n\n")}, errBadEvent.Error(), 0},
		{"a line without an end", []http.HandlerFunc{streamed("data: " + strings.Repeat("x", maxFrame+64<<10))}, "longer than 4 MB", 0},
		{"an endless event", []http.HandlerFunc{endless}, "longer than 4 MB", 0},
		{"an event without an end", []http.HandlerFunc{streamed(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 5))}, "longer than 4 MB", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, n := newTestClient(t, newTestServer(t, tt.lines...).URL)
			c.stream.tries = 3
			var failed error
			for _, err := range c.Events(t.Context(), Stream{}) {
				failed = err
			}
			if failed == nil || !strings.Contains(failed.Error(), tt.want) || len(n.naps) != tt.naps {
				t.Errorf("%v after %d pauses, want %q after %d", failed, len(n.naps), tt.want, tt.naps)
			}
		})
	}
}

// endless writes an event until the client disconnects.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	line := []byte("data: " + strings.Repeat("x", 1<<20) + "\n")
	for {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// A silent stream counts as broken. The end of the context or of the loop
// closes an open one.
func TestSilentStreamIsReplaced(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}, 3)
	hold := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, eventAt(1, 1)) // the client is connected
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}
	s := newTestServer(t, hold, refusal(403, ErrInsufficientScope), hold, hold)
	c, _ := newTestClient(t, s.URL)
	c.stream.silence = 20 * time.Millisecond
	var failed error
	for _, err := range c.Events(t.Context(), Stream{}) {
		failed = err
	}
	if <-left; !errors.Is(failed, ErrInsufficientScope) {
		t.Errorf("a silent line: %v", failed)
	}
	c.stream.silence = time.Minute
	for e, err := range c.Events(t.Context(), Stream{}) {
		if err != nil || e.ID != "evt_1" {
			t.Errorf("%v %v", e.ID, err)
		}
		break
	}
	<-left
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.Events(ctx, Stream{}) {
		failed = err
		cancel()
	}
	if <-left; !errors.Is(failed, context.Canceled) {
		t.Errorf("a context that ended: %v", failed)
	}
}
