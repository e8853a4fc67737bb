package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/gen"
)

// messageJSON is a received message; otp is JSON.
func messageJSON(id, at, otp string) string {
	return `{"object":"message","id":"` + id + `","inbox_id":"ibx_1","thread_id":"thr_1","direction":"in","status":"received","expired":false,"test_mode":false,
		"from":null,"to":[],"cc":[],"bcc":[],"reply_to":[],"subject":"s","snippet":null,"text":null,"html":null,"extracted_text":null,
		"extracted":{"otp":` + otp + `,"codes":["1234"],"links":[],"action_link":null},"calendar":null,"auth":null,"safety":null,"labels":[],"read_at":null,"headers":null,"automated":false,"truncated":false,"tag":null,"delivered_to":null,"attachments":[],
		"recipients":[],"rfc_message_id":null,"in_reply_to":[],"references":[],"size":1,"received_at":"` + at + `","sent_at":null,"delivered_at":null,"created_at":"` + at + `"}`
}

// waited returns a response of the wait operation.
func waited(message string, waitedMs int) http.HandlerFunc {
	return respond(http.StatusOK, fmt.Sprintf(`{"object":"wait_result","timed_out":%t,"message":%s,"since":"2026-01-02T03:04:05.006Z","waited_ms":%d,
		"next":{"after":null,"since":"2026-01-02T03:04:05.006Z"}}`, message == "null", message, waitedMs))
}

// code returns a response of the wait operation with view=code. otp is JSON.
func code(id, at, otp string) http.HandlerFunc {
	return respond(http.StatusOK, `{"object":"code_result","timed_out":false,"code":{"otp":`+otp+`,"codes":["1234"],"action_link":null,"same_site":false,
		"from":"a@b.example","auth":null,"message_id":"`+id+`","received_at":"`+at+`"},"next":{"after":"`+id+`","since":"2026-01-02T03:04:05.006Z"}}`)
}

const (
	at1 = "2026-01-02T03:05:00.001Z"
	at2 = "2026-01-02T03:05:00.002Z"
)

func queries(s *testServer) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked {
		q := r.URL.Query()
		text := "timeout=" + q.Get("timeout")
		for _, name := range []string{"since", "after", "has", "view", "from"} {
			if q.Has(name) {
				text += " " + name + "=" + q.Get(name)
			}
		}
		all = append(all, text)
	}
	return all
}

// All calls of a wait use the cut-off from the first response.
func TestWaitContinuesFromCallToCall(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, waited("null", 15000), waited("null", 120000), waited(messageJSON("msg_1", at1, `"1234"`), 3))
	c, n := newTestClient(t, s.URL)
	m, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{From: "*@shop.example", Has: gen.WaitHasCode})
	if err != nil || m.ID != "msg_1" {
		t.Errorf("%v %v", m, err)
	}
	const since = " since=2026-01-02T03:04:05.006Z"
	want := []string{"timeout=15 has=code from=*@shop.example", "timeout=120" + since + " has=code from=*@shop.example", "timeout=120" + since + " has=code from=*@shop.example"}
	if d := cmp.Diff(want, queries(s)); d != "" || len(n.naps) != 0 {
		t.Errorf("-want +got:\n%s, pauses of %v", d, n.naps)
	}
}

// WaitForCode skips a message with an ambiguous code.
func TestWaitForCodeSkipsAmbiguousCodes(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, code("msg_1", at1, "null"), code("msg_2", at2, `"9999"`))
	c, _ := newTestClient(t, s.URL)
	if code, err := c.WaitForCode(t.Context(), "ibx_1", Wait{}); err != nil || code != "9999" {
		t.Errorf("%q %v", code, err)
	}
	if got := queries(s); len(got) != 2 || !strings.Contains(got[1], "after=msg_1") {
		t.Errorf("asked %q", got)
	}
}

// WaitForCode returns the code of each message once. A timeout is not the end, and
// the calls go on where the last one ended.
func TestWaitForCodeRemembers(t *testing.T) {
	t.Parallel()
	again := code("msg_1", at1, `"1111"`)
	s := newTestServer(t, again, again, respond(http.StatusOK, `{"object":"code_result","timed_out":true,"code":null,"next":{"after":"msg_1","since":"2026-01-02T03:04:05.006Z"}}`),
		code("msg_2", at2, `"2222"`), code("msg_3", at2, `"3333"`), code("msg_4", at2, `"4444"`))
	c, n := newTestClient(t, s.URL)
	c.SkipCodes("msg_3")
	for _, want := range []string{"1111", "2222", "4444"} {
		if got, err := c.WaitForCode(t.Context(), "ibx_1", Wait{}); err != nil || got != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	const since = "timeout=120 since=2026-01-02T03:04:05.006Z"
	want := []string{
		"timeout=15 has=code view=code", "timeout=15 has=code view=code", since + " after=msg_1 has=code view=code", since + " after=msg_1 has=code view=code",
		"timeout=15 has=code view=code", since + " after=msg_3 has=code view=code",
	}
	if d := cmp.Diff(want, queries(s)); d != "" || len(n.naps) != 1 { // the server ended one wait at once
		t.Errorf("-want +got:\n%s, pauses of %v", d, n.naps)
	}
}

// Messages may be deleted during the loop. All others come once.
func TestNewMessagesWhileTheyAreDeleted(t *testing.T) {
	t.Parallel()
	gone := respond(400, `{"error":{"code":"invalid_request","message":"is not a message of this inbox","param":"after","request_id":"req_1"}}`)
	s := newTestServer(t, waited(messageJSON("msg_1", at1, "null"), 3), waited(messageJSON("msg_2", at1, "null"), 3), gone,
		waited(messageJSON("msg_1", at1, "null"), 3), waited(messageJSON("msg_3", at1, "null"), 3), refusal(404, ErrNotFound))
	c, _ := newTestClient(t, s.URL)
	var got []string
	var failed error
	for m, err := range c.NewMessages(t.Context(), "ibx_1", Wait{}) {
		if failed = err; err == nil {
			got = append(got, m.ID)
		}
	}
	if d := cmp.Diff([]string{"msg_1", "msg_2", "msg_3"}, got); d != "" || !errors.Is(failed, ErrNotFound) {
		t.Errorf("%v: -want +got:\n%s", failed, d)
	}
	const since = "timeout=120 since=2026-01-02T03:04:05.006Z"
	want := []string{"timeout=15", since + " after=msg_1", since + " after=msg_2", "timeout=120 since=" + at1, "timeout=120 since=" + at1 + " after=msg_1", "timeout=120 since=" + at1 + " after=msg_3"}
	if d := cmp.Diff(want, queries(s)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A restarting server ends waits early, then refuses connections, then works
// again.
func TestWaitOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, waited("null", 15000), waited("null", 2), hangUp(""), hangUp(""), hangUp(""), hangUp(""), refusal(503, ErrUnavailable), waited(messageJSON("msg_1", at1, "null"), 3))
	c, n := newTestClient(t, s.URL)
	m, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{})
	if err != nil || m.ID != "msg_1" || len(n.naps) != 6 || n.naps[0] != firstPause {
		t.Errorf("%v %v, pauses of %v", m, err, n.naps)
	}
	for i, q := range queries(s)[1:] {
		if q != "timeout=120 since=2026-01-02T03:04:05.006Z" {
			t.Errorf("call %d asks for %s", i+2, q)
		}
	}
}

// The client stops soon if the server never responded, and later if it does
// not come back.
func TestWaitDoesNotGoOnForever(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, waited("null", 15000))
	c, n := newTestClient(t, s.URL, WithRetries(1, time.Minute))
	s.rest = hangUp("")
	if _, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{}); err == nil || len(n.naps) != maxFailed {
		t.Errorf("%v after pauses of %v", err, n.naps)
	}
	s.Close()
	c, n = newTestClient(t, s.URL)
	if _, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{Since: time.Now()}); err == nil || len(n.naps) != defaultTries-1 {
		t.Errorf("%v after pauses of %v", err, n.naps)
	}
}

// The first call leaves the cut-off to the server, so it must not be retried
// late.
func TestTheFirstCallOfAWaitIsNotTriedLate(t *testing.T) {
	t.Parallel()
	late := refusal(429, ErrRateLimited, "Retry-After", "45")
	c, n := newTestClient(t, newTestServer(t, late, waited(messageJSON("msg_1", at1, "null"), 3)).URL)
	if _, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{}); !errors.Is(err, ErrRateLimited) || len(n.naps) != 0 {
		t.Errorf("%v after pauses of %v", err, n.naps)
	}
	c, _ = newTestClient(t, newTestServer(t, late, waited(messageJSON("msg_1", at1, "null"), 3)).URL)
	if _, err := c.WaitForMessage(t.Context(), "ibx_1", Wait{Since: time.Unix(1, 0)}); err != nil {
		t.Errorf("with a cut-off of one's own: %v", err)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := newTestServer(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	c, _ := newTestClient(t, s.URL)
	if _, err := c.WaitForMessage(ctx, "ibx_1", Wait{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	s = newTestServer(t, waited(messageJSON("msg_1", at1, "null"), 3))
	c, _ = newTestClient(t, s.URL)
	if _, err := c.WaitForMessage(ctx, "ibx_1", Wait{Since: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if asked, err := strconv.Atoi(s.requests()[0].URL.Query().Get("timeout")); err != nil || asked < 1 || asked >= int(patience/time.Second) {
		t.Errorf("the request has a timeout of %d seconds, longer than %v: %v", asked, patience, err)
	}
}

func TestWaitNamesOlderMatches(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"wait_result","timed_out":true,"message":null,"since":"2026-01-02T00:00:00.000Z","waited_ms":0,
			"older":{"count":3,"newest":"2026-01-01T00:00:00.000Z"},"next":{"after":null,"since":"2026-01-02T00:00:00.000Z"}}`)
	})
	c, _ := newTestClient(t, s.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.WaitForMessage(ctx, "ibx_1", Wait{})
	const want = "3 older, the newest of 2026-01-01T00:00:00Z: pass since=2026-01-01T00:00:00Z to include it"
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// patience limits the time for anything that must happen.
const patience = 2 * time.Minute
