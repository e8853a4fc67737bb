package webhook_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// oneAttempt delivers one event to an endpoint with this handler, and
// returns the delivery and the endpoint.
func oneAttempt(t *testing.T, handler http.HandlerFunc) (store.Delivery, store.Webhook) {
	t.Helper()
	r := newReceiver(t)
	r.respond(handler)
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	w, _ := newEndpoint(t, s, in.AccountID, r.URL)
	storetest.Received(t, s, in)
	runOnce(t, newDispatcher(t, s, time.Now), 1)
	after, err := s.Webhook(t.Context(), in.AccountID, w.ID)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries(t, s, w)[0], after
}

func TestRedirectsAreNotFollowed(t *testing.T) { // W3
	t.Parallel()
	followed := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(followed.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{followed.URL, "http://10.0.0.1/"} {
			d, _ := oneAttempt(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, code) })
			if d.Status != store.DeliveryPending || *d.LastStatusCode != code || *d.LastError != "the endpoint returned "+strconv.Itoa(code) {
				t.Errorf("%d to %s: %+v", code, to, d)
			}
		}
	}
}

func TestLongResponsesAreCut(t *testing.T) { // W5
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.CopyN(z, zeros{}, 10<<20)
	_ = z.Close()
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  store.DeliveryStatus
		kept    int
	}{
		{"a short response", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }, store.DeliverySucceeded, 4},
		{"an endless response", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, letters{}) }, store.DeliverySucceeded, 1024},
		{"a compressed response", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		}, store.DeliverySucceeded, -1},
		{"1 MB of header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		}, store.DeliveryPending, 0},
		{"bytes that are not text", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a\x00\xff\xc3b"))
		}, store.DeliverySucceeded, 2},
	}
	for _, tt := range tests {
		d, _ := oneAttempt(t, tt.handler)
		if d.Status != tt.status {
			t.Errorf("%s: %+v", tt.name, d)
		}
		if d.LastBody == nil {
			if tt.kept != 0 {
				t.Errorf("%s: no body is stored", tt.name)
			}
			continue
		}
		if n := len(*d.LastBody); n > 1024 || tt.kept >= 0 && n != tt.kept {
			t.Errorf("%s: %d bytes are stored", tt.name, n)
		}
	}
}

// zeros and letters are endless readers.
type (
	zeros   struct{}
	letters struct{}
)

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func (letters) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("x"), len(b))), nil }

func TestStatus410DisablesTheEndpoint(t *testing.T) { // W10
	t.Parallel()
	d, w := oneAttempt(t, status(http.StatusGone))
	if d.Status != store.DeliveryFailed || w.Active || w.DisabledReason == nil {
		t.Errorf("delivery %+v, endpoint %+v", d, w)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) { // W10
	t.Parallel()
	for _, tt := range []struct {
		code  int
		after string
		want  time.Duration
	}{
		{429, "3600", time.Hour},
		{503, "60", time.Minute},
		{429, "1", 5 * time.Second},           // not sooner than scheduled
		{429, "99999999", 10 * time.Hour},     // not later than the maximum
		{429, "tomorrow", 5 * time.Second},    // not a number
		{500, "3600", 5 * time.Second},        // not a status with Retry-After
		{429, "-5", 5 * time.Second},          // not a valid delay
		{503, "99999999999", 5 * time.Second}, // not a valid number
	} {
		clock := storetest.NewClock(begin)
		s := storetest.OpenSQLite(t, storetest.WithNow(clock.Now))
		r := newReceiver(t)
		r.respond(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", tt.after)
			w.WriteHeader(tt.code)
		})
		in := storetest.Inbox(t, s)
		w, _ := newEndpoint(t, s, in.AccountID, r.URL)
		storetest.Received(t, s, in)
		runOnce(t, newDispatcher(t, s, clock.Now), 1)
		if got := deliveries(t, s, w)[0].NextAttemptAt.Sub(clock.Now()); got != tt.want {
			t.Errorf("%d with Retry-After %s: again in %v, want %v", tt.code, tt.after, got, tt.want)
		}
	}
}

func TestFiveDaysOfFailuresTurnTheEndpointOff(t *testing.T) { // W10
	t.Parallel()
	clock := storetest.NewClock(begin)
	s := storetest.OpenSQLite(t, storetest.WithNow(clock.Now))
	r := newReceiver(t)
	r.respond(status(http.StatusBadGateway))
	in := storetest.Inbox(t, s)
	w, _ := newEndpoint(t, s, in.AccountID, r.URL)
	d := newDispatcher(t, s, clock.Now)
	active := func() bool {
		got, err := s.Webhook(t.Context(), in.AccountID, w.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got.Active
	}
	attempt := func() {
		storetest.Received(t, s, in)
		if _, err := d.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	attempt()
	clock.Add(5*24*time.Hour - time.Second)
	attempt()
	if !active() {
		t.Fatal("it was turned off too early")
	}
	r.respond(status(http.StatusOK)) // one success resets the count
	attempt()
	for range 5 {
		attempt()
	}
	r.respond(status(http.StatusBadGateway))
	attempt()
	clock.Add(5*24*time.Hour + time.Second)
	attempt()
	if active() {
		t.Fatal("it is still on")
	}
	if _, err := s.UpdateWebhook(t.Context(), in.AccountID, w.ID, nil, func(w *store.Webhook) error { w.Active = true; return nil }); err != nil {
		t.Fatal(err)
	}
	attempt()
	if !active() {
		t.Error("earlier failures disabled it again")
	}
}
