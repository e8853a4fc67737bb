package contract_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// Limits in the specification.
const (
	callsPerMinute = 600
	sendsPerMinute = 60
)

// limits reaches each limit on a separate installation that enforces them, and
// checks the response of every operation.
func limits(t *testing.T, quiet *world) {
	w := newWorld(t, start(t, quiet.engine, quiet.check))
	sender, caller := w.newKey(t, ""), w.newKey(t, "")
	link := w.linkOf(t, w.in)

	send := w.call("sendMessage").at("/v1/inboxes/" + w.inbox.ID + "/messages").as(sender.Key).
		saying(`{"to":"ana@example.org","subject":"Order","text":"Please."}`)
	for range sendsPerMinute {
		w.send(t, send).want(t, http.StatusCreated)
	}
	w.send(t, send).wantLimited(t)
	w.send(t, w.call("listInboxes").as(sender.Key)).want(t, http.StatusOK) // does not send

	w.exhaust(t, caller.Key)
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		c := call{op: op, path: w.pathWith(op, func(string) string { return "x" }), key: caller.Key}
		if bodyOf(op) != nil {
			c.body = w.example(t, op, examples(op)[0])
		}
		w.send(t, c).wantLimited(t)
	})
	for range sendsPerMinute { // the limit for bad keys per address is the same
		w.send(t, w.call("listInboxes").as("wrong")).want(t, http.StatusUnauthorized)
	}
	w.send(t, w.call("listInboxes").as("wrong")).wantLimited(t)
	w.send(t, w.call("listInboxes").as("")).wantLimited(t)
	w.send(t, w.call("downloadFile").as("").at(link)).wantLimited(t)

	a := w.send(t, w.call("listInboxes")).want(t, http.StatusOK) // a good key still works from there
	if a.header.Get("RateLimit-Limit") != strconv.Itoa(callsPerMinute) || a.header.Get("RateLimit-Remaining") == "" {
		t.Errorf("a call that counts has the headers %v", a.header)
	}
	for range callsPerMinute / 10 { // are not limited
		w.send(t, w.call("getHealth").as("")).want(t, http.StatusOK)
	}
}

func (a response) wantLimited(t *testing.T) {
	t.Helper()
	a.wantCode(t, http.StatusTooManyRequests, "rate_limited")
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || s < 1 || s > 60 {
		t.Errorf("%s: Retry-After %q", a.call, a.header.Get("Retry-After"))
	}
}

// exhaust uses up the rate limit of a key.
func (w *world) exhaust(t *testing.T, key string) {
	t.Helper()
	const clients = 8
	client := &http.Client{Transport: w.check.Transport(t, w.base)}
	req := w.request(t.Context(), t, w.call("listInboxes").asking("limit", "1").as(key))
	var calls sync.WaitGroup
	for range clients {
		calls.Go(func() {
			for range (callsPerMinute + clients - 1) / clients {
				res, err := client.Do(req.Clone(t.Context()))
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close() // only the count matters
			}
		})
	}
	calls.Wait()
}
