package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/internal/waittest"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

// TestServiceRecoversFromDatabaseOutages stops PostgreSQL under load, as a crash of
// its machine would, and starts it again. Meanwhile SMTP responds with 451 and the API
// with 503, and nothing else. Afterwards the service recovers by itself, and has
// stored everything that it accepted. Row C7 of docs/testing.md.
func TestServiceRecoversFromDatabaseOutages(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	in := installationAt(t, storetest.PostgreSQL, filepath.Join(t.TempDir(), "data"), server.URL(testpg.DefaultDatabase))
	in.start()
	boxes := in.createInboxes("from", "to")
	o := &outages{in: in, from: boxes[0], to: boxes[1], received: newLedger("received"), sent: newLedger("sent")}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	working, ctx := errgroup.WithContext(ctx)
	for i := range clients {
		working.Go(func() error { return o.deliver(ctx) })
		working.Go(func() error { return o.send(ctx, i%2 == 0) })
		working.Go(func() error { return o.read(ctx) })
	}
	var took []time.Duration
	for range pick(1, 10) {
		o.both(ctx, t, "mail is accepted", accepted)
		if err := server.StopImmediate(); err != nil {
			t.Fatal(err)
		}
		o.both(ctx, t, "mail is refused", refused)
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		o.both(ctx, t, "mail is accepted again", accepted)
		took = append(took, time.Since(back))
	}
	done()
	if err := working.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	longest := slices.Max(took)
	t.Logf("%d outages, recovered within %s; received: %s; sent: %s; %d responses to readers, %d of them 503",
		len(took), seconds(longest), o.received, o.sent, o.reads.Load(), o.readsRefused.Load())
	if longest > mostToRecover {
		t.Errorf("it took %v to recover", longest)
	}
	waittest.Until(t, "no claim is stuck", func() bool { return in.count(`SELECT count(*) FROM recipients WHERE leased`) == 0 })
	o.audit(t)
}

// mostToRecover is how long the service may refuse mail after the database is back.
const mostToRecover = 5 * time.Second

// startPostgres starts a separate server, as durable as in production.
func startPostgres(t *testing.T) *testpg.Server {
	t.Helper()
	server, err := testpg.Start(t.Context(), testpg.Options{Fsync: true})
	if errors.Is(err, testpg.ErrNotFound) {
		skiptest.OutsideCI(t, fmt.Sprintf("no PostgreSQL for this test: %v", err))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// outages runs load on an installation whose database stops and starts.
type outages struct {
	in             *installation
	from, to       inbox
	received, sent *ledger

	reads, readsRefused atomic.Int64
	mu                  sync.Mutex
	refusals            int // of API calls that send
}

// both waits until messages received and sent after the call have that outcome.
func (o *outages) both(ctx context.Context, t *testing.T, what string, want outcome) {
	t.Helper()
	count := func() (messages, calls int) {
		if want == accepted {
			return o.received.count(want), o.sent.count(want)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.received.count(want), o.refusals
	}
	messages, calls := count()
	// Calls that began before may still end.
	messages, calls = messages+clients+1, calls+clients+1
	waittest.Until(t, what, func() bool {
		m, c := count()
		return m >= messages && c >= calls || ctx.Err() != nil
	})
}

// deliver sends messages over SMTP until ctx ends. Each must get a reply. It never
// retries a message.
func (o *outages) deliver(ctx context.Context) error {
	n := o.in.current()
	for ctx.Err() == nil {
		c, err := dialSMTP(o.in.t.Context(), n.smtp)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		for ctx.Err() == nil && err == nil {
			m := newMessage(o.received.next(), 2<<10, o.to.Address)
			var what outcome
			what, err = c.send(m)
			o.received.write(m.id, entry{outcome: what, to: m.to, size: len(m.raw)})
		}
		c.close()
		if no, ok := errors.AsType[*refusal](err); err != nil && (!ok || no.code != 451) {
			return fmt.Errorf("a message got %w", err)
		}
	}
	return nil
}

// send sends messages over the API until ctx ends. With an idempotency key it repeats
// a call until it is accepted.
func (o *outages) send(ctx context.Context, keyed bool) error {
	c := o.in.current().caller()
	defer c.close()
	for ctx.Err() == nil {
		id := o.sent.next()
		var header []string
		if keyed {
			header = []string{"Idempotency-Key", id}
		}
		body := map[string]any{"to": o.to.Address, "subject": id, "text": bodyMark(id)}
		what := refused
		for again := true; again; {
			err := o.call(c, http.StatusCreated, http.MethodPost, "/v1/inboxes/"+o.from.ID+"/messages", body, header...)
			switch {
			case err == nil:
				what = accepted
			case errors.Is(err, errAway):
				o.mu.Lock()
				o.refusals++
				o.mu.Unlock()
			default:
				return err
			}
			again = keyed && what != accepted && ctx.Err() == nil
		}
		o.sent.write(id, entry{outcome: what, to: []string{o.to.Address}})
	}
	return nil
}

// errAway is the expected response with status 503.
var errAway = errors.New("the service is not available")

// call makes a call that must get the status want or, as errAway, 503.
func (o *outages) call(c *caller, want int, method, path string, body any, header ...string) error {
	err := c.call(o.in.t.Context(), want, nil, method, path, body, header...)
	if no, ok := errors.AsType[*unwanted](err); ok && no.status == http.StatusServiceUnavailable && no.header.Get("Retry-After") != "" {
		return errAway
	}
	return err
}

// read lists messages and waits for messages until ctx ends.
func (o *outages) read(ctx context.Context) error {
	c := o.in.current().caller()
	defer c.close()
	for i := 0; ctx.Err() == nil; i++ {
		path := "/v1/messages?limit=10"
		if i%4 == 0 {
			path = "/v1/inboxes/" + o.from.ID + "/messages/wait?timeout=1"
		}
		err := o.call(c, http.StatusOK, http.MethodGet, path, nil)
		o.reads.Add(1)
		if errors.Is(err, errAway) {
			o.readsRefused.Add(1)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// audit checks for everything that was promised. A message that was refused when the
// database stopped may be stored: the service cannot know whether it committed.
func (o *outages) audit(t *testing.T) {
	t.Helper()
	o.in.stop()
	o.in.hurry(t.Context())
	o.in.start()
	o.in.auditBoth(o.sent, o.received, o.to, true)
}
