package faults_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWebhooksSurviveKills kills the service while it posts events to an endpoint that
// refuses 30 % of the posts. Every message that a call promised has one event, the
// endpoint accepts it in the end, and a repeated post has the same id and is about the
// same message. Row W9 of docs/testing.md.
func TestWebhooksSurviveKills(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.settings = append(in.settings, mayPostHere)
		w := &posting{in: in, events: pick(200, 10_000), kills: pick(4, 20)}
		w.run(t)
	})
}

type posting struct {
	in            *installation
	events, kills int

	box      inbox
	receiver *hookReceiver
	promised sync.Map // ids of messages
	made     atomic.Int64
}

func (w *posting) run(t *testing.T) {
	t.Helper()
	w.receiver = newHookReceiver(t)
	w.in.start()
	w.box = w.in.createInboxes("posted")[0]
	w.in.createHook(w.receiver.URL, "message.received")
	k := newKiller(t, w.in, 2*w.events/w.kills)
	// A step is a call or a post, so that kills continue while the remaining events
	// are posted.
	refuse := refuseSome(0.3)
	w.receiver.respondWith(func(id string, before int) int {
		k.step()
		return refuse(id, before)
	})
	enough := func() bool { return int(w.made.Load()) >= w.events && k.kills >= w.kills }
	k.underKills(t, clients, enough, func() { w.in.hurryHooks(true) }, func(ctx context.Context, _ int) error {
		return w.client(ctx, k)
	})
	w.in.settleHooks()
	events, posts := w.receiver.count()
	t.Logf("%d kills; %d events in %d posts", k.kills, events, posts)
	w.audit(t)
}

// client simulates messages until there are enough, and then waits.
func (w *posting) client(ctx context.Context, k *killer) error {
	for ctx.Err() == nil {
		n, err := w.in.await(ctx)
		if err != nil {
			return nil // the test is over
		}
		if int(w.made.Load()) >= w.events {
			w.in.hurryHooks(false)
			if w.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'`) == 0 {
				k.step() // nothing else causes steps now
			}
			idle(ctx, 100*time.Millisecond)
			continue
		}
		c := n.caller()
		var m message
		err = c.call(ctx, http.StatusCreated, &m, http.MethodPost, "/v1/inboxes/"+w.box.ID+"/simulate",
			map[string]any{"from": sender, "subject": "posted", "text": "t"})
		c.close()
		if err == nil {
			w.promised.Store(m.ID, true)
			w.made.Add(1)
		}
		k.step()
	}
	return nil
}

// audit compares what the endpoint accepted with what is stored and was promised.
func (w *posting) audit(t *testing.T) {
	t.Helper()
	stored := map[string]int{}
	for _, m := range w.in.messages("in") {
		stored[m.ID] = 0
	}
	w.receiver.mu.Lock()
	defer w.receiver.mu.Unlock()
	for id, n := range w.receiver.taken {
		about := w.receiver.about[id]
		if _, is := stored[about]; !is {
			t.Errorf("%s was posted %d times for %s, which is not stored", id, n, about)
		}
		stored[about]++
	}
	for id, n := range stored {
		if n != 1 {
			t.Errorf("%s has %d accepted events", id, n)
		}
	}
	w.promised.Range(func(id, _ any) bool {
		if _, is := stored[id.(string)]; !is { //nolint:forcetypeassert // only strings are stored
			t.Errorf("%s was promised and is not stored", id)
		}
		return true
	})
	failed := w.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'`)
	events := w.in.count(`SELECT count(*) FROM events WHERE type = 'message.received'`)
	if failed != 0 || events != len(w.receiver.taken) || events < w.events {
		t.Errorf("%d events, %d accepted, %d deliveries without success", events, len(w.receiver.taken), failed)
	}
}

// refuseSome responds with 500 to this share of the posts, but at most four times for
// one event, because the retry schedule is finite.
func refuseSome(share float64) func(id string, before int) int {
	return func(_ string, before int) int {
		if before < 4 && rand.Float64() < share {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
}

// idle waits for d or until ctx ends.
func idle(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
