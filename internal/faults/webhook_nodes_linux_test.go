package faults_test

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// TestTwoNodesPostEachEventOnce runs two nodes on one database. Each event is posted
// once, whichever node created it, and both nodes post. When one node is killed while
// it posts, the other posts the rest. Row W9 of docs/testing.md.
func TestTwoNodesPostEachEventOnce(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, storetest.PostgreSQL)
	in.settings = append(in.settings, mayPostHere)
	n := &twoNodes{in: in, receiver: newHookReceiver(t)}
	n.first = in.start()
	t.Cleanup(n.first.kill)
	n.second = in.start()
	n.box = in.createInboxes("posted")[0]
	in.createHook(n.receiver.URL, "message.received")

	n.eachPostsOnce(t, pick(200, 2000))
	n.otherTakesOver(t)
}

type twoNodes struct {
	in            *installation
	first, second *node
	box           inbox
	receiver      *hookReceiver
}

// simulate creates that number of events, at these nodes in turn.
func (n *twoNodes) simulate(t *testing.T, events int, nodes ...*node) {
	t.Helper()
	inParallel(t, events, func(ctx context.Context, i int) error {
		c := nodes[i%len(nodes)].caller()
		defer c.close()
		return c.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+n.box.ID+"/simulate",
			map[string]any{"from": sender, "subject": "posted", "text": "t"})
	})
}

// eachPostsOnce waits until both nodes have posted all events.
func (n *twoNodes) eachPostsOnce(t *testing.T, events int) {
	t.Helper()
	n.simulate(t, events, n.first, n.second)
	n.in.settleHooks()
	taken, posts := n.receiver.count()
	t.Logf("%d events in %d posts", taken, posts)
	if taken != events || posts != events {
		t.Errorf("%d events were posted in %d posts, want %d once", taken, posts, events)
	}
}

// otherTakesOver kills the first node while it waits for responses and the second node
// is stopped.
func (n *twoNodes) otherTakesOver(t *testing.T) {
	t.Helper()
	const events = 40
	before, _ := n.receiver.count()
	arrived, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	n.receiver.respondWith(func(string, int) int {
		first.Do(func() { close(arrived) })
		<-release
		return http.StatusOK
	})
	n.second.signal(t, syscall.SIGSTOP)
	n.simulate(t, events, n.first)
	<-arrived
	n.first.kill()
	n.second.signal(t, syscall.SIGCONT)
	close(release)
	waittest.Until(t, "only deliveries claimed by the dead node are left", func() bool {
		return n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND NOT leased`) == 0
	})
	left := n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE leased`)
	n.in.hurryHooks(true) // its leases end
	n.in.settleHooks()
	taken, posts := n.receiver.count()
	t.Logf("%d more events, %d of them claimed by the dead node; %d posts in all", taken-before, left, posts)
	if failed := n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'`); taken-before != events || left == 0 || failed != 0 {
		t.Errorf("%d events were posted, want %d; %d deliveries were claimed, %d did not succeed", taken-before, events, left, failed)
	}
}

func (n *node) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
