package web_test

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// The stream ends when the session does, and a person with too many of them gets
// a page that works without.
func TestLiveStreams(t *testing.T) {
	s := openSQLite(t)
	streams := make([]*http.Response, 0, 10)
	open := func() *http.Response {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/live?events=message.received", nil)
		must(t, err)
		req.AddCookie(&http.Cookie{Name: "postroom_session", Value: s.session}) //nolint:gosec // only for this test
		res, err := http.DefaultTransport.RoundTrip(req)
		must(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	for range 10 {
		res := open()
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("a stream: %d %v", res.StatusCode, res.Header)
		}
		streams = append(streams, res)
	}
	if res := open(); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("stream 11: %d, want 429", res.StatusCode)
	}
	s.visit(t).get("/live?events=message.received").want(t, http.StatusSeeOther)
	v := s.visitAsUser(t)
	v.post("/sign-out", nil).want(t, http.StatusSeeOther)
	start := time.Now()
	for _, res := range streams {
		if _, err := res.Body.Read(make([]byte, 100)); err != nil {
			t.Fatal(err) // the head of the stream
		}
		for {
			if _, err := res.Body.Read(make([]byte, 4096)); err != nil {
				break
			}
		}
	}
	if took := time.Since(start); took > 45*time.Second {
		t.Errorf("the streams ended %s after the session", took)
	}
}
