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

// troubles causes faults of a cluster.
type troubles struct {
	*cluster
	pause    time.Duration // between two of them, and as much again at most
	stranger *installation // a node with a wrong clock, which comes and goes

	kills, freezes, restarts, strangers, crashes int
}

// disturb causes one fault after another until ctx ends, and each kind at least once.
func (c *troubles) disturb(ctx context.Context, rng *rand.Rand) {
	for i := 0; ctx.Err() == nil || i < 5; i++ {
		pause(c.t.Context(), c.pause+upTo(rng, c.pause))
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
			pause(c.t.Context(), c.pause+upTo(rng, 5*c.pause))
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
			victim.set(n)
		case 2:
			c.crashes++
			c.crashPostgres()
		case 4:
			c.restarts++
			victim.stop()
			victim.start()
			c.wrongClock([]string{"200h", "100s", "-200h"}[c.strangers%3])
		}
	}
}

// wrongClock runs a node with a wrong clock for a while.
func (c *troubles) wrongClock(ahead string) {
	c.strangers++
	c.stranger.settings = append(c.nodes[0].settings[:len(c.nodes[0].settings):len(c.nodes[0].settings)], clockAhead+"="+ahead)
	n := c.stranger.start()
	pause(c.t.Context(), 5*time.Second)
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
func (c *troubles) crashPostgres() {
	if err := c.server.StopImmediate(); err != nil {
		c.t.Error(err)
	}
	pause(c.t.Context(), c.pause/2)
	if err := c.server.Restart(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}
