//go:build unix

package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// handout is what a worker knows of a claim of a message. starts and ends are by the clock
// of the database: the time of the transaction that claimed, and the end of the claim.
// got is when the worker had the response, and released, if it is not zero, when it began to
// release the message.
type handout struct {
	token                       int64
	starts, ends, got, released time.Time
	done                        bool
}

// overlaps reports whether h was handed out before the claim before it was over.
func (h handout) overlaps(before handout) bool {
	if h.token == before.token || before.done {
		return true
	}
	if !before.released.IsZero() && !h.got.Before(before.released) {
		return false
	}
	return h.starts.Before(before.ends.Add(-time.Millisecond)) // a response has whole milliseconds
}

// claimers are workers that share an inbox of a cluster by claims.
type claimers struct {
	*cluster
	lease time.Duration

	mu                            sync.Mutex
	handouts                      map[string][]handout // by message
	done, died, released, tooLate int
}

// claimResult is a response of POST /v1/messages/claim.
type claimResult struct {
	Message *message `json:"message"`
	Claim   struct {
		Token     int64     `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	} `json:"claim"`
}

// work claims messages until quit is closed. Some claims it leaves to end by themselves,
// as a worker does that dies, and some it works on for too long.
func (w *claimers) work(ctx context.Context, quit <-chan struct{}, rng *rand.Rand, seed int64) {
	for i := seed; ctx.Err() == nil; i++ {
		select {
		case <-quit:
			return
		default:
		}
		n := w.pick(ctx, i)
		if n == nil {
			return
		}
		var r claimResult
		if err := w.post(ctx, n, "/v1/messages/claim", map[string]any{"inbox_id": w.to.ID, "seconds": int(w.lease.Seconds())}, &r); err != nil || r.Message == nil {
			pause(ctx, 20*time.Millisecond)
			continue
		}
		h := handout{token: r.Claim.Token, starts: r.Claim.ExpiresAt.Add(-w.lease), ends: r.Claim.ExpiresAt, got: time.Now()}
		counter := &w.died
		switch rng.IntN(25) {
		case 0: // dies
		case 1:
			counter, h.released = &w.released, time.Now()
			_ = w.update(ctx, r, "release", i)
		case 2: // works for too long, with one extension
			pause(ctx, w.lease/2)
			if e := w.update(ctx, r, "extend", i); e.ExpiresAt.After(h.ends) {
				h.ends = e.ExpiresAt
			}
			pause(ctx, w.lease+upTo(rng, w.lease))
			fallthrough
		default:
			counter = &w.tooLate
			if h.done = w.update(ctx, r, "done", i).Status == "done"; h.done {
				counter = &w.done
			}
		}
		w.mu.Lock()
		*counter++
		w.handouts[r.Message.ID] = append(w.handouts[r.Message.ID], h)
		w.mu.Unlock()
	}
}

// ended is a response of POST /v1/messages/{id}/claim, empty for one that says that the
// claim is lost.
type ended struct {
	Status    string    `json:"status"`
	ExpiresAt time.Time `json:"expires_at"`
}

// update repeats the call at other nodes until one responds.
func (w *claimers) update(ctx context.Context, r claimResult, action string, seed int64) (e ended) {
	for i := seed; ctx.Err() == nil; i++ {
		n := w.pick(ctx, i)
		if n == nil {
			break
		}
		body := map[string]any{"token": r.Claim.Token, "action": action, "seconds": int(w.lease.Seconds())}
		err := w.post(ctx, n, "/v1/messages/"+r.Message.ID+"/claim", body, &e)
		no, refused := errors.AsType[*unwanted](err)
		if err == nil || refused && no.status == http.StatusConflict {
			return e
		}
		if refused && no.status != http.StatusServiceUnavailable {
			w.t.Errorf("%s: %v", action, no)
			return e
		}
		pause(ctx, 20*time.Millisecond)
	}
	return e
}

func (w *claimers) post(ctx context.Context, n *node, path string, body, out any) error {
	api := n.caller()
	defer api.close()
	api.http.Timeout = 10 * time.Second
	w.calls.Add(1)
	return api.call(ctx, http.StatusOK, out, http.MethodPost, path, body)
}

// audit checks that no two claims of a message were held at once, and that each message was
// handed out and is done once.
func (w *claimers) audit(messages int) {
	w.t.Helper()
	if len(w.handouts) != messages {
		w.t.Errorf("%d messages were handed out, of %d", len(w.handouts), messages)
	}
	for id, all := range w.handouts {
		slices.SortFunc(all, func(a, b handout) int { return int(a.token - b.token) })
		done := 0
		for i, h := range all {
			if h.done {
				done++
			}
			if i > 0 && h.overlaps(all[i-1]) {
				w.t.Errorf("%s was handed out to two at once: %+v, then %+v", id, all[i-1], h)
			}
		}
		if done != 1 {
			w.t.Errorf("%s is done %d times: %+v", id, done, all)
		}
	}
}

// TestWorkersShareAnInbox lets 20 workers claim the messages of an inbox at three nodes,
// which are killed, while they arrive. Each message is handed out, none to two at once, and
// each is done once. Row N5 of docs/testing.md.
func TestWorkersShareAnInbox(t *testing.T) {
	t.Parallel()
	w := &claimers{cluster: newCluster(t, pick(500, 10_000)), lease: pick(2*time.Second, 5*time.Second), handouts: map[string][]handout{}}
	for _, in := range w.nodes {
		in.start()
	}
	boxes := w.nodes[0].createInboxes("from", "to")
	w.from, w.to = boxes[0], boxes[1]
	const open = `SELECT count(*) FROM messages WHERE next_attempt_at IS NOT NULL`
	rng, quit, began := randomness(t), make(chan struct{}), time.Now()
	ctx, stop := context.WithTimeout(t.Context(), 12*time.Minute)
	defer stop()
	var receiving, working sync.WaitGroup
	for i := range int64(4) {
		receiving.Go(func() { w.receive(ctx, i) })
	}
	for i := range int64(20) {
		own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		working.Go(func() { w.work(ctx, quit, own, i) })
	}
	kills := 0
	for left := 1; ctx.Err() == nil && (left > 0 || kills < 3); {
		pause(ctx, time.Second+upTo(rng, time.Second))
		if w.received.count(accepted) < w.messages || kills < 3 {
			victim := w.nodes[rng.IntN(len(w.nodes))]
			victim.crash()
			victim.start()
			kills++
		} else {
			receiving.Wait()
			left = w.nodes[0].count(open)
		}
	}
	took := time.Since(began)
	close(quit)
	working.Wait()
	messages := w.nodes[0].count(`SELECT count(*) FROM messages WHERE direction = 'in'`)
	if n := w.received.count(accepted); messages < n {
		t.Errorf("%d messages are stored, and %d were accepted", messages, n)
	}
	w.audit(messages)
	t.Logf("%d messages, %d claims done, %d left to end, %d released, %d too late, %d kills, %d calls, %.0f s: %.0f messages a second",
		messages, w.done, w.died, w.released, w.tooLate, kills, w.calls.Load(), took.Seconds(), float64(messages)/took.Seconds())
}
