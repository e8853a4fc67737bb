package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/waittest"
)

// mostToReady is the longest time from the start of the process to the first healthy
// response.
const mostToReady = time.Second

// TestReadyWithinASecond starts the service on an empty database, and repeatedly on
// one with messages, after a stop and after a kill.
func TestReadyWithinASecond(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		first := untilHealthy(t, in)
		fill(t, in, pick(400, 20_000))
		var took []time.Duration
		for i := range pick(4, 20) {
			if i%2 == 0 {
				in.stop()
			} else {
				in.crash()
			}
			took = append(took, untilHealthy(t, in))
		}
		slices.Sort(took)
		t.Logf("ready after %s with an empty database, and with mail after %s to %s", seconds(first), seconds(took[0]), seconds(took[len(took)-1]))
		slowest := took[len(took)-1]
		if !full { // other tests use the processor; TestStartsAtOnceAndIdlesSmall subtracts their share
			return
		}
		if first > mostToReady || slowest > mostToReady {
			t.Errorf("it took %s on an empty database, and up to %s on one with mail", seconds(first), seconds(slowest))
		}
	})
}

// untilHealthy starts the service and returns how long it took to become healthy.
func untilHealthy(t *testing.T, in *installation) time.Duration {
	t.Helper()
	n := in.start()
	c := n.caller()
	defer c.close()
	waittest.Until(t, "the service is healthy", func() bool {
		a, err := c.do(t.Context(), http.MethodGet, "/health", nil)
		return err == nil && a.status == http.StatusOK
	})
	return time.Since(n.began)
}

// fill delivers that number of messages to the installation.
func fill(t *testing.T, in *installation, messages int) {
	t.Helper()
	const senders = 16
	boxes := in.createInboxes("box0", "box1", "box2", "box3")
	filling, ctx := errgroup.WithContext(t.Context())
	for i := range senders {
		filling.Go(func() error { return fillShare(ctx, in.current(), boxes[i%len(boxes)], i, messages/senders) })
	}
	if err := filling.Wait(); err != nil {
		t.Fatal(err)
	}
}

func fillShare(ctx context.Context, n *node, box inbox, share, messages int) error {
	c, err := dialSMTP(ctx, n.smtp)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range messages {
		if _, err := c.send(newMessage(fmt.Sprintf("fill-%d-%d", share, i), 4<<10, box.Address)); err != nil {
			return err
		}
	}
	return nil
}
