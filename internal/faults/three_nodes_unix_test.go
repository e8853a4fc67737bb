//go:build unix

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
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// clockAhead is testclock.Variable, which only a program of tests has.
const clockAhead = "POSTROOM_TEST_CLOCK_AHEAD"

// cluster is three nodes on one PostgreSQL database, a relay, and the ledgers of the
// clients.
type cluster struct {
	t        *testing.T
	server   *testpg.Server
	relay    *smtptest.MX
	messages int           // emails to be sent to the inbox, to the relay, and messages to be received
	pace     time.Duration // between two operations of a client
	nodes    []*installation
	from, to inbox

	sent, relayed, received *ledger
	calls                   atomic.Int64
}

func newCluster(t *testing.T, messages int) *cluster {
	t.Helper()
	c := &cluster{
		t: t, server: startPostgres(t), relay: smtptest.NewMX(t, smtptest.MXConfig{}), messages: messages,
		sent: newLedger("sent"), relayed: newLedger("relayed"), received: newLedger("received"),
	}
	for range 3 {
		c.nodes = append(c.nodes, c.node())
	}
	return c
}

// node returns a node that does not run yet.
func (c *cluster) node() *installation {
	c.t.Helper()
	in := installationAt(c.t, storetest.PostgreSQL, filepath.Join(c.t.TempDir(), "data"), c.server.URL(testpg.DefaultDatabase))
	in.settings = []string{
		"POSTROOM_SECRET=" + strings.Repeat("the same on all nodes ", 2), mayPostHere,
		"POSTROOM_RELAY=smtp://" + c.relay.Addr() + "?tls=maybe",
	}
	return in
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

// send sends emails of a ledger with idempotency keys, until enough are accepted. It
// repeats a call that fails at another node.
func (c *cluster) send(ctx context.Context, book *ledger, seed int64) {
	for ctx.Err() == nil && book.count(accepted) < c.messages {
		id := book.next()
		to := c.to.Address
		if book == c.relayed {
			to = id + "@outside.example"
		}
		body := map[string]any{"to": to, "subject": id, "text": bodyMark(id)}
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
		book.write(id, entry{outcome: o, to: []string{to}})
		pause(ctx, c.pace)
	}
}

// receive sends messages over SMTP until enough are accepted. It offers each once.
func (c *cluster) receive(ctx context.Context, seed int64) {
	for i := seed; ctx.Err() == nil && c.received.count(accepted) < c.messages; i++ {
		n := c.pick(ctx, i)
		if n == nil {
			return
		}
		s, err := dialSMTP(ctx, n.smtp)
		if err != nil {
			continue
		}
		for err == nil && ctx.Err() == nil && c.received.count(accepted) < c.messages {
			m := newMessage(c.received.next(), 2<<10, c.to.Address)
			var o outcome
			o, err = s.send(m)
			c.received.write(m.id, entry{outcome: o, to: m.to, size: len(m.raw)})
			pause(ctx, c.pace)
		}
		s.close()
	}
}

func (c *cluster) enough() bool {
	return min(c.sent.count(accepted), c.relayed.count(accepted), c.received.count(accepted)) >= c.messages
}

// work runs the clients until enough is accepted, and fault meanwhile.
func (c *cluster) work(fault func(ctx context.Context)) {
	ctx, done := context.WithTimeout(c.t.Context(), 20*time.Minute)
	defer done()
	var working sync.WaitGroup
	for i := range int64(clients) {
		working.Go(func() { c.send(ctx, c.sent, i) })
		working.Go(func() { c.send(ctx, c.relayed, i) })
		working.Go(func() { c.receive(ctx, 2*i) })
		working.Go(func() { c.receive(ctx, 2*i+1) })
	}
	fault(ctx)
	working.Wait()
}

// audit checks for everything that was promised. It returns the emails that the relay
// got more than once, of deaths times at which a node may have died between the relay's
// reply and the record of it.
func (c *cluster) audit(deaths int) (again []string) {
	c.t.Helper()
	in := c.nodes[0]
	in.hurry(c.t.Context()) // rows that killed nodes had claimed
	in.settle()
	in.auditBoth(c.sent, c.received, c.to, true)
	got := map[string]int{}
	for _, m := range c.relay.Messages() {
		for _, to := range m.To {
			id, _, _ := strings.Cut(to, "@")
			got[id]++
		}
	}
	for id, e := range c.relayed.entries {
		switch {
		case e.outcome == accepted && got[id] == 0:
			c.t.Errorf("%s was accepted and never sent", id)
		case got[id] > 1:
			again = append(again, fmt.Sprintf("%s (%d times)", id, got[id]))
		}
	}
	if len(again) > deaths*mostRepeated {
		c.t.Errorf("%d emails were sent more than once, in %d deaths", len(again), deaths)
	}
	if n := in.count(`SELECT count(*) FROM recipients WHERE leased`); n != 0 {
		c.t.Errorf("%d claims are stuck", n)
	}
	return again
}

// mostRepeated is how many emails one death of a node may repeat: those that wait in one
// transaction for the record of the relay's reply.
const mostRepeated = 20

// troubles causes the faults of TestThreeNodesUnderFaultsLoseNothing.
type troubles struct {
	*cluster
	least    int           // faults
	pause    time.Duration // between two of them, and as much again at most
	stranger *installation // a node with a wrong clock, which comes and goes

	kills, freezes, restarts, strangers, crashes int
}

// disturb causes one fault after another until enough is sent and received.
func (c *troubles) disturb(ctx context.Context, rng *rand.Rand) {
	for i := 0; ctx.Err() == nil && (!c.enough() || i < c.least); i++ {
		pause(ctx, c.pause+upTo(rng, c.pause))
		victim := c.nodes[rng.IntN(len(c.nodes))]
		switch i % 5 {
		case 0, 3:
			c.kills++
			victim.crash()
			victim.start()
		case 1:
			c.freezes++
			n := victim.current()
			victim.set(nil) // its clients choose another node when it does not respond
			_ = n.cmd.Process.Signal(syscall.SIGSTOP)
			pause(ctx, c.pause+upTo(rng, 5*c.pause))
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
			victim.set(n)
		case 2:
			c.crashes++
			c.crashPostgres(ctx)
		case 4:
			c.restarts++
			victim.stop()
			victim.start()
			c.wrongClock(ctx, []string{"200h", "100s", "-200h"}[c.strangers%3])
		}
	}
}

// wrongClock runs a node with a wrong clock for a while.
func (c *troubles) wrongClock(ctx context.Context, ahead string) {
	c.strangers++
	c.stranger.settings = append(c.nodes[0].settings[:len(c.nodes[0].settings):len(c.nodes[0].settings)], clockAhead+"="+ahead)
	n := c.stranger.start()
	pause(ctx, 5*time.Second)
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

// crashPostgres stops PostgreSQL as a crash of its machine would, and starts it again.
func (c *troubles) crashPostgres(ctx context.Context) {
	if err := c.server.StopImmediate(); err != nil {
		c.t.Error(err)
	}
	pause(ctx, c.pause/2)
	if err := c.server.Restart(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// TestThreeNodesUnderFaultsLoseNothing sends and receives over three nodes that are
// killed, frozen and restarted, while PostgreSQL crashes, and a fourth node with a wrong
// clock starts and stops. Every accepted message is stored once, nothing is deleted, and
// every webhook is posted. The relay gets every email; it gets one again only if a node
// died before it had recorded the relay's reply. Rows N1 and C9 of docs/testing.md.
func TestThreeNodesUnderFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	moved, err := withCrashpoints()
	if err != nil {
		t.Fatal(err)
	}
	c := &troubles{cluster: newCluster(t, pick(100, 10_000)), least: pick(5, 15), pause: pick(time.Second/2, 3*time.Second)}
	c.stranger = c.node()
	c.stranger.program = moved
	for _, in := range c.nodes {
		in.start()
	}
	boxes := c.nodes[0].createInboxes("from", "to")
	c.from, c.to = boxes[0], boxes[1]
	hooks := newHookReceiver(t)
	c.nodes[0].createHook(hooks.URL, "message.received")

	began, rng := time.Now(), randomness(t)
	c.work(func(ctx context.Context) { c.disturb(ctx, rng) })
	took := time.Since(began)

	again := c.audit(c.kills + c.freezes + c.crashes*len(c.nodes))
	in := c.nodes[0]
	in.hurryHooks(true) // also what killed nodes had claimed
	in.settleHooks()
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
| emails accepted | %d to an inbox, %d to the relay, in %d calls |
| sent to the relay more than once | %d: %v |
| messages received | %d accepted, %d refused, %d without a reply |
| kills, freezes, restarts, nodes with a wrong clock | %d, %d, %d, %d |
| crashes of PostgreSQL | %d |
| messages stored, webhooks taken | %d, %d |
| time | %.0f s |`,
		c.sent.count(accepted), c.relayed.count(accepted), c.calls.Load(), len(again), again,
		c.received.count(accepted), c.received.count(refused), c.received.count(unknown),
		c.kills, c.freezes, c.restarts, c.strangers, c.crashes, len(stored), posted, took.Seconds())
}
