package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

var begin = time.Date(2026, 9, 23, 12, 0, 0, 0, time.UTC)

// post is a received request.
type post struct {
	path, id, timestamp, signature, body string
}

// receiver is the server of an endpoint. The test sets its responses.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	posts   []post
	handler http.HandlerFunc
}

func postOf(r *http.Request, body string) post {
	h := r.Header
	return post{r.URL.Path, h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), body}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{handler: func(http.ResponseWriter, *http.Request) {}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body)) // for the response
		p := postOf(req, string(body))
		r.mu.Lock()
		r.posts = append(r.posts, p)
		handler := r.handler
		r.mu.Unlock()
		handler(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) respond(f http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = f
}

func (r *receiver) got() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]post{}, r.posts...)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func bodyOfID(_ context.Context, e store.Event) ([]byte, error) {
	return []byte(`{"id":"` + e.ID + `"}`), nil
}

func newDispatcher(t *testing.T, s *store.Store, now func() time.Time, edits ...func(*webhook.Config)) *webhook.Dispatcher {
	t.Helper()
	allow, err := netguard.ParsePrefixes("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	cfg := webhook.Config{
		Store: s, Body: bodyOfID, Targets: netguard.NewTargets(netguard.New(netguard.Config{Allow: allow}), nil), Now: now,
		Jitter: func() float64 { return 0 }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	d, err := webhook.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newEndpoint(t *testing.T, s *store.Store, accountID int64, url string, types ...store.EventType) (store.Webhook, string) {
	t.Helper()
	w := store.Webhook{AccountID: accountID, URL: url, Active: true}
	if types != nil {
		w.Events = &store.JSON[[]store.EventType]{V: types}
	}
	w, secret, err := s.CreateWebhook(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w, secret
}

func deliveries(t *testing.T, s *store.Store, w store.Webhook) []store.Delivery {
	t.Helper()
	l, err := s.ListDeliveries(t.Context(), w, store.DeliveryFilter{}, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return l.Rows
}

func runOnce(t *testing.T, d *webhook.Dispatcher, want int) {
	t.Helper()
	n, err := d.RunOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n != want {
		t.Fatalf("%d deliveries were attempted, want %d", n, want)
	}
}

// verify checks a request as Standard Webhooks requires.
func verify(p post, secret string) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	m := hmac.New(sha256.New, key)
	_, _ = io.WriteString(m, p.id+"."+p.timestamp+"."+p.body)
	want := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	if !slices.Contains(strings.Fields(p.signature), want) {
		return errors.New("no signature of this secret")
	}
	return nil
}

func TestEventsReachTheEndpointsThatWantThem(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		r := newReceiver(t)
		in := storetest.Inbox(t, s)
		_, secret := newEndpoint(t, s, in.AccountID, r.URL+"/all")
		newEndpoint(t, s, in.AccountID, r.URL+"/sent", store.EventMessageSent)
		newEndpoint(t, s, storetest.Account(t, s).Seq, r.URL+"/other")
		storetest.Received(t, s, in)

		runOnce(t, newDispatcher(t, s, time.Now), 1)

		got := r.got()
		if len(got) != 1 || got[0].path != "/all" || got[0].body != `{"id":"`+got[0].id+`"}` || !strings.HasPrefix(got[0].id, "evt_") {
			t.Fatalf("got %+v", got)
		}
		if err := verify(got[0], secret); err != nil {
			t.Error(err)
		}
		if at, err := strconv.ParseInt(got[0].timestamp, 10, 64); err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
			t.Errorf("timestamp %s", got[0].timestamp)
		}
	})
}

func TestSchedule(t *testing.T) { // W10, W9: the id stays, the timestamp is fresh
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		r := newReceiver(t)
		r.respond(status(http.StatusInternalServerError))
		in := storetest.Inbox(t, s)
		w, _ := newEndpoint(t, s, in.AccountID, r.URL)
		d := newDispatcher(t, s, clock.Now)
		start := clock.Now()
		storetest.Received(t, s, in)
		runOnce(t, d, 1)
		waits := []time.Duration{
			5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute,
			2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
		}
		at := start
		for _, wait := range waits {
			got := deliveries(t, s, w)[0]
			at = at.Add(wait)
			if got.Status != store.DeliveryPending || !got.NextAttemptAt.Equal(at) {
				t.Fatalf("after %d attempts: %s, next at %v, want %v", got.Attempts, got.Status, got.NextAttemptAt, at)
			}
			clock.Add(at.Sub(clock.Now()) - time.Millisecond)
			runOnce(t, d, 0)
			clock.Add(time.Millisecond)
			runOnce(t, d, 1)
		}
		got := deliveries(t, s, w)[0]
		if got.Status != store.DeliveryFailed || got.Attempts != 10 || *got.LastStatusCode != 500 || got.NextAttemptAt != nil {
			t.Errorf("at the end: %+v", got)
		}
		posts := r.got()
		for _, p := range posts[1:] {
			if p.id != posts[0].id || p.timestamp == posts[0].timestamp {
				t.Errorf("%s %s after %s %s", p.id, p.timestamp, posts[0].id, posts[0].timestamp)
			}
		}
	})
}
