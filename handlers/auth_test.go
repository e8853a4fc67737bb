package handlers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// H1: all wrong keys get the same response, even those that share a prefix with
// a valid key.
func TestWrongKeysGetTheSameResponse(t *testing.T) {
	s := serve(t)
	first := ""
	for shared := range len(s.key) {
		wrong := []byte(s.key)
		for i := shared; i < len(wrong); i++ {
			wrong[i] = 'a' + (wrong[i]+1)%26
		}
		res := s.do(t, http.MethodGet, "/v1/inboxes", "", as(string(wrong))).wantError(t, http.StatusUnauthorized, "unauthorized")
		if first == "" {
			first = res.str(t, "error.message")
		}
		if got := res.str(t, "error.message"); got != first {
			t.Errorf("with %d right characters: %q, else %q", shared, got, first)
		}
	}
	for _, wrong := range []string{s.key + "x", strings.ToUpper(s.key), s.key + "," + s.key, strings.Repeat("k", 10_000), "\xff\xfe"} {
		s.do(t, http.MethodGet, "/v1/inboxes", "", as(wrong)).wantError(t, http.StatusUnauthorized, "unauthorized")
	}
	s.do(t, http.MethodGet, "/v1/inboxes", "", with("Authorization", "bearer   "+s.key)).want(t, http.StatusOK)
}

func TestKeyExpires(t *testing.T) {
	s := serve(t)
	expires := store.NewTime(begin.Add(time.Hour))
	key := as(s.newKey(t, func(k *store.Key) { k.ExpiresAt = &expires }))
	s.clock.Add(time.Hour - time.Millisecond)
	s.do(t, http.MethodGet, "/v1/inboxes", "", key).want(t, http.StatusOK)
	s.clock.Add(time.Millisecond)
	s.do(t, http.MethodGet, "/v1/inboxes", "", key).want(t, http.StatusUnauthorized)
}

// The last use of a key is written shortly after the request, not by it.
func TestLastUseOfAKey(t *testing.T) {
	s := serve(t)
	lastUsed := func() any {
		return s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).at(t, "data.0.last_used_at")
	}
	if got := lastUsed(); got != nil {
		t.Errorf("a key was last used at %v before anything was written", got)
	}
	s.clock.Add(time.Minute)
	lastUsed()
	must(t, s.store.FlushUsedKeys(t.Context()))
	if got, want := lastUsed(), "2026-09-23T10:01:00.000Z"; got != want {
		t.Errorf("the key was last used at %v, want %s", got, want)
	}
}

// H3: every node refuses a revoked key at the next call, and a running wait
// returns no message.
func TestRevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	const waits = 100
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s := nodes[0]
		in := s.newInbox(t)
		made := s.do(t, http.MethodPost, "/v1/keys", `{"name":"to be revoked"}`).want(t, http.StatusCreated)
		key := as(made.str(t, "key"))
		responses := make(chan response, waits)
		for i := range waits {
			n := nodes[i%len(nodes)]
			go func() {
				res, err := n.try(t.Context(), t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=60", "", key)
				if err != nil {
					t.Error(err)
				}
				responses <- res
			}()
		}
		for _, n := range nodes {
			waittest.Until(t, "the server has the waits", func() bool { return n.waits.Load() == int64(waits/len(nodes)) })
			n.do(t, http.MethodGet, "/v1/inboxes", "", key).want(t, http.StatusOK)
		}
		s.do(t, http.MethodDelete, "/v1/keys/"+made.str(t, "id"), "").want(t, http.StatusOK)
		for _, n := range nodes {
			n.do(t, http.MethodGet, "/v1/inboxes", "", key).wantError(t, http.StatusUnauthorized, "unauthorized")
		}
		s.receive(t, in, "Subject: for others")
		for range waits {
			(<-responses).wantError(t, http.StatusUnauthorized, "unauthorized")
		}
	})
}
