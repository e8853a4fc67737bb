//go:build unix && faults

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// threeNodesMessages is how many emails are sent, and how many messages are received.
	threeNodesMessages = 10_000
	// threeNodesFaults is how many faults there are at least.
	threeNodesFaults = 12
	// clockAhead is testclock.Variable, which only a program of tests has.
	clockAhead = "POSTROOM_TEST_CLOCK_AHEAD"
)

// cluster is three nodes on one PostgreSQL database under faults, and the ledgers of
// its clients.
type cluster struct {
	t        *testing.T
	nodes    []*installation
	stranger *installation // a node with a wrong clock, which comes and goes
	from, to inbox

	sent, received *ledger
	calls          atomic.Int64

	kills, freezes, restarts, strangers int
}

// pick returns a node that serves.
func (c *cluster) pick(ctx context.Context, i int64) *node {
	for ; ctx.Err() == nil; i++ {
		if n := c.nodes[int(i)%len(c.nodes)].current(); n != nil {
			return n
		}
	}
	return nil
}

// send sends emails with idempotency keys until enough are accepted. It repeats a call
// that fails at another node.
func (c *cluster) send(ctx context.Context, seed int64) {
	for ctx.Err() == nil && c.sent.count(accepted) < threeNodesMessages {
		id := c.sent.next()
		body := map[string]any{"to": c.to.Address, "subject": id, "text": bodyMark(id)}
		o := unknown
		for try := seed; o != accepted && ctx.Err() == nil; try++ {
			n := c.pick(ctx, try)
			if n == nil {
				break
			}
			api := n.caller()
			api.http.Timeout = 10 * time.Second // a frozen node is left
			err := api.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+c.from.ID+"/messages", body, "Idempotency-Key", id)
			api.close()
			c.calls.Add(1)
			no, refusedIt := errors.AsType[*unwanted](err)
			switch {
			case err == nil:
				o = accepted
			case refusedIt && no.status != http.StatusServiceUnavailable && no.status != http.StatusConflict:
				c.t.Errorf("%s: %v", id, no)
				return
			}
		}
		c.sent.write(id, entry{outcome: o, to: []string{c.to.Address}})
	}
}

// receive sends messages over SMTP until enough are accepted. It offers each once.
func (c *cluster) receive(ctx context.Context, seed int64) {
	for i := seed; ctx.Err() == nil && c.received.count(accepted) < threeNodesMessages; i++ {
		n := c.pick(ctx, i)
		if n == nil {
			return
		}
		s, err := dialSMTP(ctx, n.smtp)
		if err != nil {
			continue
		}
		for err == nil && ctx.Err() == nil && c.received.count(accepted) < threeNodesMessages {
			m := newMessage(c.received.next(), 2<<10, c.to.Address)
			var o outcome
			o, err = s.send(m)
			c.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
		}
		s.close()
	}
}

// disturb causes one fault after another until enough is sent and received.
func (c *cluster) disturb(ctx context.Context, rng *rand.Rand) {
	for i := 0; ctx.Err() == nil && (!c.enough() || i < threeNodesFaults); i++ {
		wait(ctx, 3*time.Second+upTo(rng, 3*time.Second))
		victim := c.nodes[rng.IntN(len(c.nodes))]
		switch i % 4 {
		case 0, 2:
			c.kills++
			victim.crash()
			victim.start()
		case 1:
			c.freezes++
			n := victim.current()
			victim.set(nil) // its clients choose another node when it does not respond
			_ = n.cmd.Process.Signal(syscall.SIGSTOP)
			wait(ctx, 5*time.Second+upTo(rng, 15*time.Second))
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
			victim.set(n)
		case 3:
			c.restarts++
			victim.stop()
			victim.start()
			c.wrongClock(ctx, []string{"200h", "100s", "-200h"}[c.strangers%3])
		}
	}
}

// wrongClock runs a node with a wrong clock for a while.
func (c *cluster) wrongClock(ctx context.Context, ahead string) {
	c.strangers++
	c.stranger.settings = append(c.nodes[0].settings[:len(c.nodes[0].settings):len(c.nodes[0].settings)], clockAhead+"="+ahead)
	n := c.stranger.start()
	wait(ctx, 5*time.Second)
	api := n.caller()
	defer api.close()
	var h struct {
		Work struct {
			State   string   `json:"state"`
			Reasons []string `json:"reasons"`
		} `json:"work"`
	}
	if err := api.call(c.t.Context(), http.StatusOK, &h, http.MethodGet, "/health", nil); err != nil || h.Work.State != "paused" {
		c.t.Errorf("the node with a clock %s ahead reports %+v, %v", ahead, h, err)
	}
	c.stranger.crash()
}

func (c *cluster) enough() bool {
	return c.sent.count(accepted) >= threeNodesMessages && c.received.count(accepted) >= threeNodesMessages
}

// TestThreeNodesUnderFaultsLoseNothing sends and receives over three nodes that are
// killed, frozen and restarted, while a fourth node with a wrong clock starts and
// stops. Every accepted message is stored once, nothing is deleted, and every webhook
// is posted. Rows N1 and C9 of docs/testing.md.
func TestThreeNodesUnderFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	moved, err := withCrashpoints()
	if err != nil {
		t.Fatal(err)
	}
	database := testpg.Schema(t)
	c := &cluster{t: t, sent: newLedger("sent"), received: newLedger("received")}
	for i := range 4 {
		in := installationAt(t, storetest.PostgreSQL, filepath.Join(t.TempDir(), fmt.Sprint("node", i)), database)
		in.settings = []string{"POSTROOM_SECRET=" + strings.Repeat("the same on all nodes ", 2), mayPostHere}
		if i < 3 {
			in.start()
			c.nodes = append(c.nodes, in)
			continue
		}
		c.stranger, in.program = in, moved
	}
	boxes := c.nodes[0].createInboxes("from", "to")
	c.from, c.to = boxes[0], boxes[1]
	hooks := newHookReceiver(t)
	c.nodes[0].createHook(hooks.URL, "message.received")

	began := time.Now()
	ctx, done := context.WithTimeout(t.Context(), 20*time.Minute)
	defer done()
	var working sync.WaitGroup
	for i := range int64(2 * clients) {
		working.Go(func() { c.send(ctx, i) })
		working.Go(func() { c.receive(ctx, i) })
	}
	c.disturb(ctx, randomness(t))
	working.Wait()
	took := time.Since(began)

	in := c.nodes[0]
	in.hurry(t.Context()) // rows that killed nodes had claimed
	in.settle()
	in.settleHooks()
	in.auditBoth(c.sent, c.received, c.to, true)
	stored := in.messages("in")
	hooks.mu.Lock()
	posted := hooks.types["message.received"]
	hooks.mu.Unlock()
	if posted != len(stored) {
		t.Errorf("%d webhooks were posted for %d messages", posted, len(stored))
	}
	t.Logf(`
| | |
|---|---|
| emails accepted | %d, in %d calls |
| messages received | %d accepted, %d refused, %d without a reply |
| kills, freezes, restarts, nodes with a wrong clock | %d, %d, %d, %d |
| messages stored, webhooks taken | %d, %d |
| time | %.0f s |`,
		c.sent.count(accepted), c.calls.Load(), c.received.count(accepted), c.received.count(refused), c.received.count(unknown),
		c.kills, c.freezes, c.restarts, c.strangers, len(stored), posted, took.Seconds())
}
