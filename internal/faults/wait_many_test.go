package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/waittest"
)

// TestEachOfManyWaitsGetsItsOwnMessage opens a wait on each of many inboxes, and then
// sends one message to each. Every wait returns the message of its own inbox. Row H15
// of docs/testing.md.
func TestEachOfManyWaitsGetsItsOwnMessage(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.start()
		m := &manyWaits{in: in, began: map[string]time.Time{}}
		boxes := m.makeInboxes(t, pick(200, 1000))
		working, ctx := errgroup.WithContext(t.Context())
		for _, box := range boxes {
			working.Go(func() error { return m.wait(ctx, box) })
		}
		waittest.Until(t, "all waits are open", func() bool { return m.open.Load() == int64(len(boxes)) || ctx.Err() != nil })
		for i := range clients {
			working.Go(func() error { return m.send(ctx, boxes, i) })
		}
		if err := working.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d waits at once, each returned its own message, %s after its sending began", len(boxes), spread(m.delays))
	})
}

// manyWaits runs one wait and one message for each of many inboxes.
type manyWaits struct {
	in   *installation
	open atomic.Int64 // waits that were sent

	mu     sync.Mutex
	began  map[string]time.Time // when the sending of the message began, by inbox
	delays []time.Duration      // from then to the end of the wait
}

func (m *manyWaits) makeInboxes(t *testing.T, n int) []inbox {
	t.Helper()
	boxes := make([]inbox, n)
	making, ctx := errgroup.WithContext(t.Context())
	for i := range clients {
		making.Go(func() error {
			api := m.in.current().caller()
			defer api.close()
			for j := i; j < n; j += clients {
				body := map[string]any{"name": fmt.Sprintf("many%d", j)}
				if err := api.call(ctx, http.StatusCreated, &boxes[j], http.MethodPost, "/v1/inboxes", body); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := making.Wait(); err != nil {
		t.Fatal(err)
	}
	return boxes
}

// wait waits on one inbox.
func (m *manyWaits) wait(ctx context.Context, box inbox) error {
	api := m.in.current().caller()
	defer api.close()
	ctx = whenSent(ctx, func() { m.open.Add(1) })
	var res waitResult
	if err := api.call(ctx, http.StatusOK, &res, http.MethodGet, "/v1/inboxes/"+box.ID+"/messages/wait?timeout=50", nil); err != nil {
		return err
	}
	ended := time.Now()
	if res.Message == nil || res.Message.Subject != box.Name || res.Message.InboxID != box.ID {
		return fmt.Errorf("the wait on %s returned %+v, %+v", box.Name, res, res.Message)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delays = append(m.delays, max(0, ended.Sub(m.began[box.ID])))
	return nil
}

// send sends a message to every fourth inbox.
func (m *manyWaits) send(ctx context.Context, boxes []inbox, first int) error {
	c, err := dialSMTP(ctx, m.in.current().smtp)
	if err != nil {
		return err
	}
	defer c.close()
	for i := first; i < len(boxes); i += clients {
		m.mu.Lock()
		m.began[boxes[i].ID] = time.Now()
		m.mu.Unlock()
		if _, err := c.send(newMessage(boxes[i].Name, 1<<10, boxes[i].Address)); err != nil {
			return err
		}
	}
	return nil
}
