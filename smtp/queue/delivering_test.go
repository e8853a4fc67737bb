package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// world is a store with an inbox that sends, and a clock that stands still, or
// nil for the real one.
type world struct {
	store *store.Store
	clock *storetest.Clock
	inbox store.Inbox
}

// start is when the clocks of the tests begin.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// inWorld runs a test on every engine.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) { test(t, newWorld(t, cfg)) })
}

// inSQLite runs a test that is about the wire, and not about the store.
func inSQLite(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	test(t, newWorld(t, storetest.Config(t, storetest.SQLite)))
}

func newWorld(t *testing.T, cfg store.Config) *world {
	t.Helper()
	w := &world{clock: storetest.NewClock(start)}
	cfg.Now = w.clock.Now
	w.store = storetest.OpenConfig(t, cfg)
	w.inbox = storetest.Inbox(t, w.store)
	return w
}

func logTo(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// loopback lets mail go to the fake servers.
func loopback() *netguard.Guard {
	return netguard.New(netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
}

// queue makes a queue that finds the domains of zones, all on this port.
func (w *world) queue(t testing.TB, port uint16, zones smtptest.Zones, edits ...func(*queue.Config)) *queue.Queue {
	t.Helper()
	now := time.Now
	if w.clock != nil {
		now = w.clock.Now
	}
	r, err := inbound.NewReceiver(inbound.ReceiverConfig{
		Store: w.store, Domain: storetest.Domain, TempDir: t.TempDir(), Now: now, Log: logTo(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := queue.Config{
		Store: w.store, Local: r, Domain: storetest.Domain, HELO: "mail.in.example", MXPort: port,
		Resolver: outbound.NewResolver(smtptest.NewDNS(t, zones)), Guard: loopback(), Now: now, Log: logTo(t),
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	q, err := queue.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// send queues a message from the inbox. It removes suppressions of earlier tests.
func (w *world) send(t testing.TB, to ...string) store.Message {
	t.Helper()
	for _, email := range to {
		_, err := w.store.DeleteSuppression(t.Context(), w.inbox.AccountID, mail.FoldAddress(email))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	return storetest.Sent(t, w.store, w.inbox, to)
}

// round runs one round that has to claim n recipients.
func round(t testing.TB, q *queue.Queue, n int) {
	t.Helper()
	got, err := q.RunOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got != n {
		t.Fatalf("the round claimed %d recipients, want %d", got, n)
	}
}

// message reads a message again.
func (w *world) message(t testing.TB, m store.Message) store.Message {
	t.Helper()
	got, err := w.store.Message(t.Context(), m.AccountID, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wantRecipient fails unless the only recipient of m is in this state, and its
// response begins like this.
func (w *world) wantRecipient(t testing.TB, m store.Message, status store.RecipientStatus, response string) store.Recipient {
	t.Helper()
	rs := w.message(t, m).Recipients
	if len(rs) != 1 {
		t.Fatalf("the message has %d recipients", len(rs))
	}
	wantState(t, rs[0], status, response)
	return rs[0]
}

func wantState(t testing.TB, r store.Recipient, status store.RecipientStatus, response string) {
	t.Helper()
	var got string
	if r.LastResponse != nil {
		got = *r.LastResponse
	}
	if r.Status != status || !strings.HasPrefix(got, response) {
		t.Errorf("%s is %s with %q, want %s with %q", r.Email, r.Status, got, status, response)
	}
}

// run runs the queue until the returned function is called, which waits for it.
func run(t testing.TB, q *queue.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	stopped := false
	stop = func() {
		t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run() = %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// port is where l listens.
func port(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) } //nolint:gosec // a port fits

// addresses makes n addresses of one domain.
func addresses(n int, domain string) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("user%d@%s", i, domain))
	}
	return list
}
