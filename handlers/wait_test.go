package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
)

// waiting is a running wait.
type waiting struct {
	responses chan response
}

// wait starts a wait and returns once the server has received it.
func (s *server) wait(ctx context.Context, t *testing.T, in store.Inbox, query string) waiting {
	t.Helper()
	before := s.waits.Load()
	w := waiting{make(chan response, 1)}
	go func() {
		defer close(w.responses)
		res, err := s.try(ctx, t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?"+query, "")
		if err == nil {
			w.responses <- res
		} else if ctx.Err() == nil {
			t.Error(err)
		}
	}()
	waittest.Until(t, "the server has the wait", func() bool { return s.waits.Load() > before })
	return w
}

// response returns the response of a wait, which must come soon.
func (w waiting) response(t *testing.T) response {
	t.Helper()
	select {
	case res, ok := <-w.responses:
		if !ok {
			t.Fatal("the wait got no response")
		}
		return res.want(t, http.StatusOK)
	case <-time.After(20 * time.Second):
		t.Fatal("the wait did not end")
		return response{}
	}
}

func TestWaitReturnsAStoredMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		l := s.listed(t) // the clock is five minutes ahead
		at := func(name string) string { return url.QueryEscape(l.byName[name].CreatedAt.Format(time.RFC3339Nano)) }
		tests := []struct{ name, query, want string }{
			{"the oldest match since a time", "since=" + at("welcome"), "welcome"},
			{"since a time is inclusive", "since=" + at("code"), "code"},
			{"received mail by default", "since=" + at("sent"), "reply"},
			{"sent mail when asked", "direction=out&since=" + at("welcome"), "sent"},
			{"from an address", "from=NO-REPLY@mail.github.example&since=" + at("welcome"), "code"},
			{"from a domain", "from=" + url.QueryEscape("*@*.github.example") + "&since=" + at("welcome"), "code"},
			{"a part of the subject", "subject=SURE&since=" + at("welcome"), "reply"},
			{"with a code", "has=code&since=" + at("welcome"), "code"},
			{"after a message", "after=" + l.byName["welcome"].ID, "code"},
			{"after a message, others skipped", "after=" + l.byName["code"].ID, "reply"},
			{"after a message, but not before a time", "after=" + l.byName["welcome"].ID + "&since=" + at("sent"), "reply"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				res := s.do(t, http.MethodGet, "/v1/inboxes/"+l.one.ID+"/messages/wait?timeout=1&"+tt.query, "").want(t, http.StatusOK)
				if id := res.str(t, "message.id"); id != l.byName[tt.want].ID {
					t.Errorf("got %s", res.body)
				}
				res.wantAt(t, "timed_out", `false`)
				res.wantAt(t, "object", `"wait_result"`)
			})
		}
	})
}

func TestWaitTimesOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		l := s.listed(t)
		older := func(count int, name string) string {
			return fmt.Sprintf(`"older":{"count":%d,"newest":"%s"},`, count, l.byName[name].CreatedAt.Format("2006-01-02T15:04:05.000Z"))
		}
		tests := []struct{ name, query, since, after, older string }{
			{"mail of more than a minute ago", "", after(4 * time.Minute), "null", older(3, "reply")},
			{"older mail with a code", "has=code", after(4 * time.Minute), "null", older(1, "code")},
			{"older mail of a sender", "from=" + url.QueryEscape("*@*.github.example"), after(4 * time.Minute), "null", older(1, "code")},
			{"older mail that was sent", "direction=out", after(4 * time.Minute), "null", older(1, "sent")},
			{"mail before a time", "since=" + url.QueryEscape(after(time.Hour)), after(time.Hour), "null", older(3, "reply")},
			{"mail of another inbox", "subject=too&since=2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z", "null", ""},
			{"mail without a link", "has=link&since=2026-01-01T00:00:00.1239Z", "2026-01-01T00:00:00.123Z", "null", ""},
			{"nothing after the last", "after=" + l.byName["reply"].ID, after(3 * time.Minute), `"` + l.byName["reply"].ID + `"`, ""},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				res := s.do(t, http.MethodGet, "/v1/inboxes/"+l.one.ID+"/messages/wait?timeout=0&"+tt.query, "").want(t, http.StatusOK)
				res.wantSame(t, response{body: []byte(`{"object":"wait_result","timed_out":true,"message":null,"since":"` + tt.since + `","waited_ms":0,` + tt.older + `
					"next":{"after":` + tt.after + `,"since":"` + tt.since + `"}}`)})
			})
		}
	})
}

func TestWaitRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in, other := s.newInbox(t), s.newInbox(t)
		m := s.receive(t, other, "Subject: a")
		for _, after := range []string{m.ID, "msg_0", "x"} {
			s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?after="+after, "").
				wantError(t, http.StatusBadRequest, "invalid_request after")
		}
		s.do(t, http.MethodGet, "/v1/inboxes/ibx_0/messages/wait?after="+m.ID, "").wantError(t, http.StatusNotFound, "not_found")
	})
}

func TestWaitReturnsWhenMailArrives(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		w := s.wait(t.Context(), t, in, "timeout=60&subject=wanted")
		s.receive(t, in, "Subject: Something else")
		s.clock.Add(812 * time.Millisecond)
		m := s.receive(t, in, "Subject: The wanted one\n\nYour code is 482913.")
		res := w.response(t)
		if res.str(t, "message.id") != m.ID {
			t.Errorf("got %s", res.body)
		}
		// On a busy machine the call may have begun after the clock moved.
		waited, ok := res.at(t, "waited_ms").(float64)
		if !ok || waited != 0 && waited != 812 {
			t.Errorf("waited_ms in %s", res.body)
		}
		res.wantAt(t, "since", `"`+after((812-time.Duration(waited))*time.Millisecond-time.Minute)+`"`)
		res.wantAt(t, "message.extracted.otp", `"482913"`)
	})
}

// A client that chains its waits by after gets every message, once and in
// order, even with long pauses and many messages at the same time.
func TestWaitsInAChain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		var want, got []string
		for i := range 20 {
			want = append(want, s.receive(t, in, fmt.Sprintf("Subject: %d", i)).ID)
			if i%5 == 0 {
				s.clock.Add(2 * time.Minute)
			}
		}
		query := "since=2026-01-01T00:00:00Z"
		for range want {
			res := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=1&"+query, "").want(t, http.StatusOK)
			got = append(got, res.str(t, "message.id"))
			query = "after=" + got[len(got)-1]
			s.clock.Add(time.Minute)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A client that deletes each message at once still gets every message, once and
// in order. A deleted message of another inbox stays unknown.
func TestWaitAfterADeletedMessage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in, other := s.newInbox(t), s.newInbox(t)
		deleted := func(id string) {
			s.do(t, http.MethodDelete, "/v1/messages/"+id, "").want(t, http.StatusOK)
		}
		foreign := s.receive(t, other, "Subject: other").ID
		deleted(foreign)
		wait := func(query string) response {
			return s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=1&"+query, "")
		}
		for _, id := range []string{foreign, store.NewID("msg_", s.clock.Now()), "msg_0"} {
			wait("after="+id).wantError(t, http.StatusBadRequest, "invalid_request after")
		}
		var want, got []string
		for i := range 6 { // all at the same time
			want = append(want, s.receive(t, in, fmt.Sprintf("Subject: %d", i)).ID)
		}
		query := "since=2026-01-01T00:00:00Z"
		for range want {
			got = append(got, wait(query).want(t, http.StatusOK).str(t, "message.id"))
			deleted(got[len(got)-1])
			query = "after=" + got[len(got)-1]
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		// Much later the position is forgotten, and the time in the id counts.
		s.clock.Add(store.DeletedTTL + time.Hour)
		if n, err := s.store.Sweep(t.Context(), "deleted_messages"); err != nil || n != 7 {
			t.Errorf("swept %d places, %v", n, err)
		}
		next := s.receive(t, in, "Subject: next").ID
		wait(query).want(t, http.StatusOK).wantAt(t, "message.id", `"`+next+`"`)
		wait("after="+s.receive(t, other, "Subject: x").ID).wantError(t, http.StatusBadRequest, "invalid_request after")
	})
}

func TestWaitEndsWithItsInbox(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		w := s.wait(t.Context(), t, in, "timeout=60")
		s.do(t, http.MethodDelete, "/v1/inboxes/"+in.ID, "").want(t, http.StatusOK)
		select {
		case res := <-w.responses:
			res.wantError(t, http.StatusNotFound, "not_found")
		case <-time.After(20 * time.Second):
			t.Fatal("the wait did not end")
		}
	})
}

// A wait that finds nothing before the service stops has not timed out: the client
// waits again, on the next node or after the restart.
func TestWaitsEndWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		var waits []waiting
		for range 20 {
			waits = append(waits, s.wait(t.Context(), t, s.newInbox(t), "timeout=120"))
		}
		close(s.stopping)
		for _, w := range waits {
			select {
			case res := <-w.responses:
				res.wantStopped(t)
			case <-time.After(20 * time.Second):
				t.Fatal("the wait did not end")
			}
		}
		in := s.newInbox(t)
		path := "/v1/inboxes/" + in.ID + "/messages/wait?timeout=120"
		s.do(t, http.MethodGet, path, "").wantStopped(t)
		m := s.receive(t, in, "Subject: There")
		if id := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK).str(t, "message.id"); id != m.ID {
			t.Errorf("the wait returned %s, want %s", id, m.ID)
		}
	})
}

// wantStopped checks that the response tells the client to wait again.
func (r response) wantStopped(t *testing.T) {
	t.Helper()
	r.wantError(t, http.StatusServiceUnavailable, "unavailable")
	if got := r.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After: %q", got)
	}
}

// A disconnected client frees its wait.
func TestWaitEndsWithItsClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		ctx, gone := context.WithCancel(t.Context())
		for range 20 {
			s.wait(ctx, t, s.newInbox(t), "timeout=120")
		}
		if n := s.waits.Load() - s.waited.Load(); n != 20 {
			t.Fatalf("%d waits run", n)
		}
		gone()
		waittest.Until(t, "all waits have ended", func() bool { return s.waits.Load() == s.waited.Load() })
	})
}

func TestManyWaitsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		waits := make([]waiting, manyWaits)
		inboxes := make([]store.Inbox, manyWaits)
		for i := range manyWaits {
			inboxes[i] = s.newInbox(t)
			waits[i] = s.wait(t.Context(), t, inboxes[i], "timeout=120")
		}
		want := make([]string, manyWaits)
		var deliveries sync.WaitGroup
		for i := range manyWaits {
			deliveries.Go(func() { want[i] = s.receive(t, inboxes[i], "Subject: Yours").ID })
		}
		deliveries.Wait()
		for i, w := range waits {
			if id := w.response(t).str(t, "message.id"); id != want[i] {
				t.Fatalf("wait %d got %s, want %s", i, id, want[i])
			}
		}
	})
}

// All waits on one inbox get a result, each for its own filter.
func TestManyWaitsOnOneInbox(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		waits := make([]waiting, 50)
		for i := range waits {
			waits[i] = s.wait(t.Context(), t, in, fmt.Sprintf("timeout=120&subject=mail+%d+", i%5))
		}
		var ids [5]string
		for i := range ids {
			ids[i] = s.receive(t, in, fmt.Sprintf("Subject: Mail %d for you", i)).ID
		}
		for i, w := range waits {
			if id := w.response(t).str(t, "message.id"); id != ids[i%5] {
				t.Errorf("wait %d got %s, want %s", i, id, ids[i%5])
			}
		}
	})
}

// A wait counts as one request. It ends when its key is revoked and a message comes.
func TestWaitCountsOnceAndEndsWithItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		w := s.wait(t.Context(), t, in, "timeout=60")
		s.receive(t, in, "Subject: Hi")
		if got := w.response(t).header.Get("RateLimit-Remaining"); got != "599" {
			t.Errorf("RateLimit-Remaining: %q after one wait", got)
		}
		in = s.newInbox(t)
		w = s.wait(t.Context(), t, in, "timeout=60")
		if err := s.revoke(t, s.key); err != nil {
			t.Fatal(err)
		}
		s.receive(t, in, "Subject: Hi")
		(<-w.responses).wantError(t, http.StatusUnauthorized, "unauthorized")
	}, func(c *handlers.Config) { c.RateLimits = true })
}

func (s *server) revoke(t *testing.T, secret string) error {
	t.Helper()
	k, err := s.store.KeyByHash(t.Context(), store.HashKey(secret))
	if err != nil {
		return err
	}
	return s.store.RevokeKey(t.Context(), k.AccountID, k.ID)
}

// countWaits counts the waits that have begun and ended.
func (s *server) countWaits(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/messages/wait") && !strings.HasSuffix(r.URL.Path, "/messages/claim") {
			next.ServeHTTP(w, r)
			return
		}
		s.waits.Add(1)
		defer s.waited.Add(1)
		if with, ok := s.waitContext.Load().(func(context.Context) context.Context); ok {
			r = r.WithContext(with(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// A new link replaces the ones before, as a new code does.
func TestAWaitForALinkReturnsTheNewest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t)
		for n := range 2 {
			s.receive(t, in, fmt.Sprintf("From: shop@out.example\nSubject: Reset your password\n\nReset your password: https://shop.example/reset?token=%d\n", n))
		}
		res := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/messages/wait?timeout=1&has=link", "").want(t, http.StatusOK)
		res.wantAt(t, "message.extracted.action_link", `"https://shop.example/reset?token=1"`)
	})
}
