package faults_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// hookReceiver is a webhook endpoint of the test. It has accepted an event once it
// responds with 2xx.
type hookReceiver struct {
	*httptest.Server

	mu sync.Mutex
	// status returns the status for an event that was posted before so many times;
	// nil means 200.
	status func(id string, before int) int
	seen   map[string]int    // posts, by webhook-id
	taken  map[string]int    // posts that got 2xx, by webhook-id
	about  map[string]string // the id of the resource, by webhook-id
	types  map[string]int    // accepted events, by type
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	r := &hookReceiver{seen: map[string]int{}, taken: map[string]int{}, about: map[string]string{}, types: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(t, w, req) }))
	t.Cleanup(r.Close)
	return r
}

func (r *hookReceiver) serve(t *testing.T, w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	id := req.Header.Get("webhook-id")
	var event struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.ID != id {
		t.Errorf("%s: %v: %.200s", id, err, body)
	}
	r.mu.Lock()
	before := r.seen[id]
	r.seen[id]++
	if was, known := r.about[id]; known && was != event.Data.ID {
		t.Errorf("%s is about %s, and was about %s", id, event.Data.ID, was)
	}
	r.about[id] = event.Data.ID
	respond := r.status
	r.mu.Unlock()
	status := http.StatusOK
	if respond != nil {
		status = respond(id, before)
	}
	w.WriteHeader(status)
	if status/100 != 2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[id]++; r.taken[id] == 1 {
		r.types[event.Type]++
	}
}

// respondWith sets the responses from now on.
func (r *hookReceiver) respondWith(f func(id string, before int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = f
}

// count returns how many events were accepted, and how many posts there were.
func (r *hookReceiver) count() (events, posts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.seen {
		posts += n
	}
	return len(r.taken), posts
}

// mayPostHere allows an installation to post to this machine.
const mayPostHere = "POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8"

// createHook creates an endpoint for these types of events, or for all, and returns its
// id.
func (in *installation) createHook(url string, types ...string) (id string) {
	in.t.Helper()
	c := in.current().caller()
	defer c.close()
	body := map[string]any{"url": url}
	if len(types) > 0 {
		body["events"] = types
	}
	var w struct {
		ID string `json:"id"`
	}
	if err := c.call(in.t.Context(), http.StatusCreated, &w, http.MethodPost, "/v1/webhooks", body); err != nil {
		in.t.Fatal(err)
	}
	return w.ID
}

// hurryHooks makes deliveries due that wait for their next attempt. With leased, this
// includes those that a killed node had claimed.
func (in *installation) hurryHooks(leased bool) {
	in.t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // the database is discarded
	q := `UPDATE webhook_deliveries SET next_attempt_at = $1 WHERE next_attempt_at > $1`
	if !leased {
		q += ` AND NOT leased`
	}
	if _, err := db.ExecContext(in.t.Context(), q, time.Now().UnixMicro()); err != nil {
		in.t.Fatal(err)
	}
}

// settleHooks waits until no delivery is pending, for as long as deliveries end.
func (in *installation) settleHooks() {
	in.t.Helper()
	const waiting = `SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'`
	for left := in.count(waiting); left > 0; {
		was := left
		waittest.Until(in.t, "more deliveries are done", func() bool {
			in.hurryHooks(false) // also what was refused again
			left = in.count(waiting)
			return left < was
		})
	}
}
