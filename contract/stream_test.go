package contract_test

import (
	"context"
	"net/http"
	"testing"
)

// streamsPerKey is the maximum number of open event streams per key.
const streamsPerKey = 10

// streams checks that streams beyond the limit of a key are refused, but not
// those of another key.
func streams(t *testing.T, w *world) {
	many, other := w.newKey(t, ""), w.newKey(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(key string) (status int) {
		t.Helper()
		res, err := w.check.Transport(t, w.base).RoundTrip(w.request(ctx, t, w.call("streamEvents").as(key)))
		must(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode
	}
	for range streamsPerKey {
		if got := open(many.Key); got != http.StatusOK {
			t.Errorf("a stream that a key may have: %d", got)
		}
	}
	w.send(t, w.call("streamEvents").as(many.Key)).wantLimited(t)
	if got := open(other.Key); got != http.StatusOK {
		t.Errorf("a stream of another key: %d", got)
	}
}
