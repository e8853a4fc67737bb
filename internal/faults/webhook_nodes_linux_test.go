package faults_test

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

// TestW9TwoNodes runs two nodes on one database. Each event is told once,
// whichever node it came in at, and both tell; when one is killed in the middle
// of it, the other tells the rest.
func TestW9TwoNodes(t *testing.T) {
	t.Parallel()
	in := newInstall(t, storetest.PostgreSQL)
	in.settings = append(in.settings, mayPostHere)
	n := &twoNodes{in: in, receiver: newHookReceiver(t)}
	n.first = in.start()
	t.Cleanup(n.first.kill)
	n.second = in.start()
	n.box = in.createInboxes("told")[0]
	in.createHook(n.receiver.URL, "message.received")

	n.eachTellsOnce(t, pick(200, 2000))
	n.otherTakesOver(t)
}

type twoNodes struct {
	in            *install
	first, second *node
	box           inbox
	receiver      *hookReceiver
}

// simulate makes so many events, at these nodes in turn.
func (n *twoNodes) simulate(t *testing.T, events int, nodes ...*node) {
	t.Helper()
	inParallel(t, events, func(ctx context.Context, i int) error {
		c := nodes[i%len(nodes)].caller()
		defer c.close()
		return c.call(ctx, http.StatusCreated, nil, http.MethodPost, "/v1/inboxes/"+n.box.ID+"/simulate",
			map[string]any{"from": sender, "subject": "told", "text": "of this"})
	})
}

// eachTellsOnce leaves both nodes to it.
func (n *twoNodes) eachTellsOnce(t *testing.T, events int) {
	t.Helper()
	n.simulate(t, events, n.first, n.second)
	n.in.settleHooks()
	taken, posts := n.receiver.count()
	t.Logf("%d events in %d posts", taken, posts)
	if taken != events || posts != events {
		t.Errorf("%d events were told in %d posts, want %d once", taken, posts, events)
	}
}

// otherTakesOver kills the first node while it waits for answers, and the second
// one sleeps.
func (n *twoNodes) otherTakesOver(t *testing.T) {
	t.Helper()
	const events = 40
	before, _ := n.receiver.count()
	arrived, answer := make(chan struct{}), make(chan struct{})
	var first sync.Once
	n.receiver.answers(func(string, int) int {
		first.Do(func() { close(arrived) })
		<-answer
		return http.StatusOK
	})
	n.second.signal(t, syscall.SIGSTOP)
	n.simulate(t, events, n.first)
	<-arrived
	n.first.kill()
	n.second.signal(t, syscall.SIGCONT)
	close(answer)
	eventually(t, "nothing is left but what the dead node had in hand", func() bool {
		return n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND NOT leased`) == 0
	})
	left := n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE leased`)
	n.in.hurryHooks(true) // its leases end
	n.in.settleHooks()
	taken, posts := n.receiver.count()
	t.Logf("%d events more, %d of which the dead node had in hand; %d posts in all", taken-before, left, posts)
	if failed := n.in.count(`SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'`); taken-before != events || left == 0 || failed != 0 {
		t.Errorf("%d events were told, want %d; %d deliveries were in hand, %d have no success", taken-before, events, left, failed)
	}
}

func (n *node) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
