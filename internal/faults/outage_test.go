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

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

// TestC7DatabaseAway takes PostgreSQL away under load, as a crash of its machine
// would, and gives it back. Meanwhile SMTP answers 451 and the API 503, and
// nothing else; afterwards the service goes on by itself, and what it promised
// is there.
func TestC7DatabaseAway(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	in := installAt(t, storetest.PostgreSQL, filepath.Join(t.TempDir(), "data"), server.URL(testpg.DefaultDatabase))
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
		o.both(ctx, t, "mail is taken", accepted)
		if err := server.StopImmediate(); err != nil {
			t.Fatal(err)
		}
		o.both(ctx, t, "mail is refused", refused)
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		o.both(ctx, t, "mail is taken again", accepted)
		took = append(took, time.Since(back))
	}
	done()
	if err := working.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	longest := slices.Max(took)
	t.Logf("%d outages, going on within %s; mail: %s; sent: %s; %d answers to readers, %d of them 503",
		len(took), seconds(longest), o.received, o.sent, o.reads.Load(), o.readsRefused.Load())
	if longest > mostToRecover {
		t.Errorf("it took %v to go on", longest)
	}
	eventually(t, "no claim is stuck", func() bool { return in.count(`SELECT count(*) FROM recipients WHERE leased`) == 0 })
	o.audit(t)
}

// mostToRecover is how long after the database is back the service may refuse.
const mostToRecover = 5 * time.Second

// startPostgres starts a server of the test's own, as durable as in production.
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

// outages is load on an install whose database comes and goes.
type outages struct {
	in             *install
	from, to       inbox
	received, sent *ledger

	reads, readsRefused atomic.Int64
	mu                  sync.Mutex
	refusals            int // of calls that send
}

// both waits until a mail that comes in, and one that is sent, begun after now,
// have that outcome.
func (o *outages) both(ctx context.Context, t *testing.T, what string, want outcome) {
	t.Helper()
	count := func() (mails, calls int) {
		if want == accepted {
			return o.received.count(want), o.sent.count(want)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.received.count(want), o.refusals
	}
	mails, calls := count()
	// What was under way already may still come to its end.
	mails, calls = mails+clients+1, calls+clients+1
	eventually(t, what, func() bool {
		m, c := count()
		return m >= mails && c >= calls || ctx.Err() != nil
	})
}

// deliver sends mail over SMTP until ctx ends. Each gets an answer, and none is
// tried again.
func (o *outages) deliver(ctx context.Context) error {
	n := o.in.current()
	for ctx.Err() == nil {
		c, err := dialSMTP(o.in.t.Context(), n.smtp)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		for ctx.Err() == nil && err == nil {
			m := newMail(o.received.next(), 2<<10, o.to.Address)
			var what outcome
			what, err = c.send(m)
			o.received.write(m.id, entry{outcome: what, to: m.to, size: len(m.raw)})
		}
		c.close()
		if no, ok := errors.AsType[*refusal](err); err != nil && (!ok || no.code != 451) {
			return fmt.Errorf("mail was answered with %w", err)
		}
	}
	return nil
}

// send sends mail over the API until ctx ends; with an idempotency key, again
// until it is accepted.
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

// errAway is the answer 503, as it should be.
var errAway = errors.New("the service said that it is not available")

// call makes a call that is answered with want or, as errAway, 503.
func (o *outages) call(c *caller, want int, method, path string, body any, header ...string) error {
	err := c.call(o.in.t.Context(), want, nil, method, path, body, header...)
	if no, ok := errors.AsType[*unwanted](err); ok && no.status == http.StatusServiceUnavailable && no.header.Get("Retry-After") != "" {
		return errAway
	}
	return err
}

// read reads lists, and waits, until ctx ends.
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

// audit looks for all that was promised. What was refused at the moment when
// the database went away may be there: nobody knows whether it committed.
func (o *outages) audit(t *testing.T) {
	t.Helper()
	o.in.stop()
	o.in.hurry(t.Context())
	o.in.start()
	o.in.auditBoth(o.sent, o.received, o.to, true)
}
