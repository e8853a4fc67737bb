package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/stream"
)

// patient is much longer than any step of a stream takes.
const patient = 30 * time.Second

// runStreams runs the hub until the test ends or s.endStreams is called.
func runStreams(t *testing.T, hub *stream.Hub, s *server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) }) // always nil
	s.endStreams = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(s.endStreams)
}

// listener reads a stream of events.
type listener struct {
	t      *testing.T
	server *server
	res    *http.Response
	lines  *bufio.Reader
	hangUp context.CancelFunc
	last   string // the id of the last event
}

// event is one event of a stream.
type event struct {
	id, typ, data string
	comment       string // instead of the other fields
}

// envelope has the event fields that the tests read.
type envelope struct {
	ID       string  `json:"id"`
	Type     string  `json:"type"`
	InboxID  *string `json:"inbox_id"`
	TestMode bool    `json:"test_mode"`
	Data     struct {
		Object  string `json:"object"`
		ID      string `json:"id"`
		Subject string `json:"subject"`
		Status  string `json:"status"`
	} `json:"data"`
}

// listen opens a stream and reads its first frame. It then receives all later
// events.
func (s *server) listen(t *testing.T, query string, opts ...option) *listener {
	t.Helper()
	l, res := s.tryListen(t, query, opts...)
	if l == nil {
		t.Fatalf("open a stream: %d %s", res.status, res.body)
	}
	return l
}

// tryListen is listen for a stream that may be refused.
func (s *server) tryListen(t *testing.T, query string, opts ...option) (*listener, response) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events/stream"+query, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	for _, opt := range opts {
		req = opt(req)
	}
	res, err := (&http.Client{Transport: s.check.Transport(t, s.web.Client().Transport)}).Do(req)
	if err != nil {
		t.Fatalf("open a stream: %v", err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body) // for the failure message only
		return nil, response{res.StatusCode, res.Header, body}
	}
	l := &listener{t: t, server: s, res: res, lines: bufio.NewReader(res.Body), hangUp: cancel}
	if head, err := l.lines.ReadString('\n'); err != nil || head != "retry: 3000\n" {
		t.Fatalf("the stream begins with %q, %v", head, err)
	}
	if _, err := l.lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return l, response{}
}

// read returns the next event or comment, or io.EOF at the end. It fails the
// test after a timeout.
func (l *listener) read() (event, error) {
	l.t.Helper()
	late := time.AfterFunc(patient, l.hangUp)
	defer late.Stop()
	var e event
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				l.t.Errorf("the stream broke off: %v", err)
			}
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.id, l.last = value, value
		case "event":
			e.typ = value
		case "data":
			e.data = value
		case "":
			if value == "" {
				return e, nil
			}
			e.comment = value
		default:
			l.t.Errorf("line %q", line)
		}
	}
}

// next returns the next event, validated against its schema.
func (l *listener) next() envelope {
	l.t.Helper()
	for {
		e, err := l.read()
		if err != nil {
			l.t.Fatalf("the stream has ended: %v", err)
		}
		if e.comment != "" {
			continue
		}
		if err := l.server.check.Event([]byte(e.data)); err != nil {
			l.t.Errorf("%s: %v", e.data, err)
		}
		var v envelope
		if err := json.Unmarshal([]byte(e.data), &v); err != nil {
			l.t.Fatal(err)
		}
		if v.ID != e.id || v.Type != e.typ {
			l.t.Errorf("id %s, event %s of %s", e.id, e.typ, e.data)
		}
		return v
	}
}

// want fails the test unless the next events have these types.
func (l *listener) want(types ...string) (all []envelope) {
	l.t.Helper()
	for _, typ := range types {
		v := l.next()
		if v.Type != typ {
			l.t.Fatalf("got %+v, want a %s", v, typ)
		}
		all = append(all, v)
	}
	return all
}

// wantEnd fails the test unless the stream ends cleanly.
func (l *listener) wantEnd() {
	l.t.Helper()
	for {
		e, err := l.read()
		if err != nil {
			return
		}
		if e.comment == "" {
			l.t.Errorf("got %s, want the end", e.data)
		}
	}
}
