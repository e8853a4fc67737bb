package handlers_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/store"
)

func limited(c *handlers.Config) { c.RateLimits = true }

// wantBudget fails the test unless the rate limit headers have these values.
func (r response) wantBudget(t *testing.T, limit, remaining, reset int) {
	t.Helper()
	for name, want := range map[string]int{"RateLimit-Limit": limit, "RateLimit-Remaining": remaining, "RateLimit-Reset": reset} {
		if got := r.header.Get(name); got != strconv.Itoa(want) {
			t.Errorf("%s is %q, want %d", name, got, want)
		}
	}
}

// obey advances the clock by the Retry-After of a refused call.
func (s *server) obey(t *testing.T, r response) {
	t.Helper()
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil || seconds < 1 || seconds > 60 {
		t.Fatalf("Retry-After %q", r.header.Get("Retry-After"))
	}
	s.clock.Add(time.Duration(seconds) * time.Second)
}

func TestRequestsOfAKeyAreLimited(t *testing.T) {
	s := serve(t, limited)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
	s.clock.Add(1500 * time.Millisecond)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 598, 59)
	for i := range 598 {
		if i%100 == 0 { // calls refused for other reasons count too
			s.do(t, http.MethodGet, "/v1/inboxes/none", "").want(t, http.StatusNotFound)
			continue
		}
		s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK)
	}
	res := s.do(t, http.MethodGet, "/v1/keys", "").wantError(t, http.StatusTooManyRequests, "rate_limited")
	res.wantBudget(t, 600, 0, 59)
	s.do(t, http.MethodGet, "/v1/keys", "", as(s.newKey(t))).want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
	for _, free := range []string{"/health", "/openapi.json"} {
		s.do(t, http.MethodGet, free, "").want(t, http.StatusOK)
	}
	s.obey(t, res)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
}

func TestSendsOfAKeyAreLimited(t *testing.T) {
	s := serve(t, limited)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: Hi")
	sends := []struct{ path, body string }{
		{"/v1/inboxes/" + in.ID + "/messages", `{"to":"a@b.example","subject":"s","text":"t"}`},
		{"/v1/messages/" + m.ID + "/reply", `{"text":"t"}`},
		{"/v1/messages/" + m.ID + "/forward", `{"to":"a@b.example"}`},
		{"/v1/drafts/drf_0/send", `{}`},
	}
	s.do(t, http.MethodPost, sends[0].path, sends[0].body).want(t, http.StatusCreated).wantBudget(t, 60, 59, 60)
	for i := range 59 {
		send := sends[(i+1)%len(sends)]
		if res := s.do(t, http.MethodPost, send.path, send.body); res.status == http.StatusTooManyRequests {
			t.Fatalf("send %d is refused", i+2)
		}
	}
	var refused response
	for _, send := range sends {
		refused = s.do(t, http.MethodPost, send.path, send.body).wantError(t, http.StatusTooManyRequests, "rate_limited")
		refused.wantBudget(t, 60, 0, 60)
	}
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 600-60-len(sends)-1, 60)
	s.obey(t, refused)
	s.do(t, http.MethodPost, sends[1].path, sends[1].body).want(t, http.StatusCreated).wantBudget(t, 60, 59, 60)
}

func TestBadKeysAreLimitedByAddress(t *testing.T) {
	s := serve(t, limited)
	tries := []option{as(""), as("sk_live_unknown"), with("Authorization", "Basic abc")}
	for i := range 50 {
		spoof := with("X-Forwarded-For", "203.0.113."+strconv.Itoa(i))
		s.do(t, http.MethodGet, "/v1/inboxes", "", tries[i%len(tries)], spoof).want(t, http.StatusUnauthorized)
	}
	for range 10 { // links share the limit
		s.do(t, http.MethodGet, "/v1/files/forged", "", as("")).wantError(t, http.StatusForbidden, "link_invalid")
	}
	refused := s.do(t, http.MethodGet, "/v1/inboxes", "", as("")).wantError(t, http.StatusTooManyRequests, "rate_limited")
	s.do(t, http.MethodGet, "/v1/inboxes", "", as("sk_live_unknown")).wantError(t, http.StatusTooManyRequests, "rate_limited")
	s.do(t, http.MethodGet, "/v1/files/forged", "", as("")).wantError(t, http.StatusTooManyRequests, "rate_limited")
	s.do(t, http.MethodGet, "/v1/inboxes", "").want(t, http.StatusOK)
	s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusOK)
	s.obey(t, refused)
	s.do(t, http.MethodGet, "/v1/inboxes", "", as("")).want(t, http.StatusUnauthorized)
}

// The window begins with the first call, even if the clock goes back.
func TestWindowOfALimit(t *testing.T) {
	s := serve(t, limited)
	s.clock.Add(59*time.Second + 999*time.Millisecond) // an arbitrary time
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
	s.clock.Add(59*time.Second + 999*time.Millisecond)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 598, 1)
	s.clock.Add(time.Millisecond)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
	s.clock.Add(-24 * time.Hour)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
}

// A key used from an address that it does not allow counts against that
// address, not against the key.
func TestForeignAddressIsLimited(t *testing.T) {
	s := serve(t, limited)
	key := as(s.newKey(t, func(k *store.Key) { k.AllowedIPs.V = []string{"203.0.113.0/24"} }))
	for i := range 60 {
		s.do(t, http.MethodGet, "/v1/keys", "", key).wantError(t, http.StatusForbidden, "ip_not_allowed").wantBudget(t, 60, 59-i, 60)
	}
	s.do(t, http.MethodGet, "/v1/keys", "", key).wantError(t, http.StatusTooManyRequests, "rate_limited").wantBudget(t, 60, 0, 60)
	s.do(t, http.MethodGet, "/v1/keys", "").want(t, http.StatusOK).wantBudget(t, 600, 599, 60)
}

// Requests to unknown paths and methods count against the address, even with a
// valid key.
func TestUnknownPathsAndMethodsAreLimitedByAddress(t *testing.T) {
	s := serve(t, limited)
	wrong := []func() response{
		func() response {
			return s.do(t, http.MethodGet, "/v2/inboxes", "", as("")).wantError(t, http.StatusNotFound, "route_not_found")
		},
		func() response {
			return s.do(t, http.MethodPut, "/v1/inboxes", "{}").wantError(t, http.StatusMethodNotAllowed, "method_not_allowed")
		},
		func() response {
			return s.do(t, http.MethodGet, "/v1/inboxes/%00", "").wantError(t, http.StatusNotFound, "not_found")
		},
	}
	for i := range 60 {
		wrong[i%len(wrong)]().wantBudget(t, 60, 59-i, 60)
	}
	refused := s.do(t, http.MethodGet, "/wp-login.php", "", as("")).wantError(t, http.StatusTooManyRequests, "rate_limited")
	refused.wantBudget(t, 60, 0, 60)
	s.do(t, http.MethodPut, "/v1/inboxes", "{}").wantError(t, http.StatusTooManyRequests, "rate_limited")
	s.do(t, http.MethodGet, "/v1/inboxes", "").want(t, http.StatusOK)
	s.obey(t, refused)
	wrong[0]()
}
