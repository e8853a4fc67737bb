package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// After POST /v1/stop on one node, no node accepts a send through any door, and none
// sends anything later than a second after the response. What was queued leaves once
// sending resumes.
func TestStopAppliesToAllNodesAndEntryPoints(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		servers := startNodes(t, cfg, 3, withMCP)
		s := servers[0]
		in := s.newInbox(t)
		var stopped atomic.Int64 // the time of the response in nanoseconds; 0 while sending goes on
		var left, late atomic.Int64
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			left.Add(1)
			if at := stopped.Load(); at != 0 && time.Now().UnixNano()-at > int64(time.Second) {
				late.Add(1)
			}
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var queueing sync.RWMutex // held while messages are queued, so that all nodes begin with many
		defer running.Wait()
		defer cancel()
		var nodes []*sending
		for _, n := range servers {
			nodes = append(nodes, &sending{n, n.submission(t), s.key, in, store.Message{}})
			q := n.queue(t, mx)
			running.Go(func() {
				for ctx.Err() == nil {
					queueing.RLock()
					_, err := q.RunOnce(ctx)
					queueing.RUnlock()
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		until := func(what string, done func() bool) {
			t.Helper()
			for begun := time.Now(); !done(); {
				if t.Failed() || t.Context().Err() != nil || time.Since(begun) > time.Minute {
					t.Fatalf("waiting for %s", what)
				}
				<-tick.C
			}
		}
		doors := []string{"send", "reply", "forward", "email", "batch", "MCP", "SMTP"}
		const byDoors, more = 60, 240
		waited := int64(0) // what stops held back
		for round := range stopRounds {
			before := left.Load()
			m := s.receive(t, in, fmt.Sprintf("From: ann%d@out.example\n\nHello\n", round))
			for _, n := range nodes {
				n.received = m
			}
			queueing.Lock()
			for i := range byDoors {
				door := doors[i%len(doors)]
				if done, err := nodes[i%len(nodes)].send(ctx, t, door, fmt.Sprintf("r%d-%d@out.example", round, i)); err != nil || done != accepted {
					t.Errorf("%s: %s, %v", door, done, err)
				}
			}
			for i := range more {
				storetest.Sent(t, s.store, in, []string{fmt.Sprintf("m%d-%d@out.example", round, i)})
			}
			queueing.Unlock()
			until("the first to leave", func() bool { return left.Load() > before })
			s.do(t, http.MethodPost, "/v1/stop", `{}`).want(t, http.StatusOK).wantAt(t, "stopped", "true")
			at := time.Now()
			stopped.Store(at.UnixNano())
			for i, n := range nodes {
				for _, door := range doors {
					if done, err := n.send(ctx, t, door, "late@out.example"); err != nil || done != "sending_stopped" {
						t.Errorf("%s on node %d while sending is stopped: %s, %v", door, i, done, err)
					}
				}
			}
			// Watch for longer than the second that messages under way have.
			until("the end of the watch", func() bool { return time.Since(at) > 1500*time.Millisecond })
			stopped.Store(0)
			held := left.Load()
			s.do(t, http.MethodPost, "/v1/resume", `{}`).want(t, http.StatusOK)
			until("the rest", func() bool { return len(s.texts(t, `SELECT email FROM recipients WHERE status = 'queued'`)) == 0 })
			t.Logf("round %d: %d sent before the stop, %d after sending resumed", round, held-before, left.Load()-held)
			waited += left.Load() - held
		}
		seen := make(map[string]int)
		for _, mail := range mx.Messages() {
			for _, to := range mail.To {
				if seen[to]++; seen[to] > 1 && !strings.HasPrefix(to, "ann") { // each reply goes to her, too
					t.Errorf("%s received a message twice", to)
				}
			}
		}
		if waited == 0 {
			t.Error("no stop held anything back")
		}
		if n := late.Load(); n != 0 {
			t.Errorf("%d of %d messages were sent later than a second after a stop", n, left.Load())
		}
	})
}

// A stop of a key also applies to the keys that it created, before and after the stop.
func TestStopOfAKeyAppliesToTheKeysItCreated(t *testing.T) {
	s := serve(t)
	in, f := s.newInbox(t), s.newFamily(t)
	send := func(secret string) response {
		path, body := sendDoors["email"](in, store.Message{}, "ann@out.example")
		return s.do(t, http.MethodPost, path, body, as(secret))
	}
	stop := func(path, id string) {
		t.Helper()
		s.do(t, http.MethodPost, path, `{"key_id":"`+id+`"}`).want(t, http.StatusOK)
	}
	stop("/v1/stop", f.ids[0])
	late, _ := s.createKey(t, as(f.secrets[2]))
	for i, secret := range []string{f.secrets[0], f.secrets[1], f.secrets[2], late} {
		res := send(secret)
		res.wantError(t, http.StatusForbidden, "sending_stopped")
		if m := res.str(t, "error.message"); !strings.Contains(m, f.ids[0]) {
			t.Errorf("key %d: the message %q does not name the key to resume", i, m)
		}
	}
	send(s.key).want(t, http.StatusCreated)
	apart := s.newFamily(t)
	send(apart.secrets[2]).want(t, http.StatusCreated)

	stop("/v1/stop", f.ids[1])
	stop("/v1/resume", f.ids[0])
	send(f.secrets[0]).want(t, http.StatusCreated)
	for _, secret := range []string{f.secrets[1], f.secrets[2], late} {
		send(secret).wantError(t, http.StatusForbidden, "sending_stopped")
	}
	stop("/v1/resume", f.ids[1])
	for _, secret := range []string{f.secrets[1], f.secrets[2], late} {
		send(secret).want(t, http.StatusCreated)
	}
}

// A stop can end after its key is revoked or its inbox is deleted. Otherwise, what waits
// for it would never be sent, and retention would never delete it.
func TestResumeAfterTheKeyOrInboxIsGone(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	key := s.newKey(t, scopes("emails:send"))
	id := s.keyID(t, key)
	claimed := func() int {
		t.Helper()
		cs, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
		must(t, err)
		return len(cs)
	}
	path, body := sendDoors["email"](s.newInbox(t), store.Message{}, "ann@out.example")
	s.do(t, http.MethodPost, path, body, as(key)).want(t, http.StatusCreated)
	storetest.Sent(t, s.store, in, []string{"bob@out.example"})
	stops := []struct{ field, id, path string }{{"key_id", id, "/v1/keys/"}, {"inbox_id", in.ID, "/v1/inboxes/"}}
	for _, stop := range stops {
		s.do(t, http.MethodPost, "/v1/stop", fmt.Sprintf(`{%q:%q}`, stop.field, stop.id)).want(t, http.StatusOK)
	}
	if n := claimed(); n != 0 {
		t.Fatalf("claimed %d of a stopped key and inbox", n)
	}
	for _, stop := range stops {
		s.do(t, http.MethodDelete, stop.path+stop.id, "").want(t, http.StatusOK)
		resume := fmt.Sprintf(`{%q:%q}`, stop.field, stop.id)
		s.do(t, http.MethodPost, "/v1/resume", resume).want(t, http.StatusOK).wantAt(t, stop.field, strconv.Quote(stop.id))
		if n := claimed(); n != 1 {
			t.Errorf("after resuming %s: claimed %d, want 1", stop.id, n)
		}
		s.do(t, http.MethodPost, "/v1/resume", resume).want(t, http.StatusNotFound)
	}
}
