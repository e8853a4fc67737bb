package queue_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A server that never takes the mail is asked on the decided schedule, each
// pause up to a tenth longer or shorter, for the last time after 24 hours.
func TestTransientFailureIsRetriedOnSchedule(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var asked []time.Time
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error {
			asked = append(asked, w.clock.Now())
			return smtptest.Refuse(450, [3]int{4, 2, 0}, fmt.Sprintf("greylisted %d", len(asked)))
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		m := w.send(t, "bob@out.example")

		round(t, q, 1)
		for range 20 {
			r := w.message(t, m).Recipients[0]
			if r.Status != store.RecipientQueued {
				break
			}
			wantState(t, r, store.RecipientQueued, fmt.Sprintf("450 4.2.0 greylisted %d", len(asked)))
			w.clock.Add(r.NextAttemptAt.Sub(w.clock.Now()) - time.Millisecond)
			round(t, q, 0)
			w.clock.Add(time.Millisecond)
			round(t, q, 1)
		}

		r := w.wantRecipient(t, m, store.RecipientBounced, "450 4.2.0 greylisted")
		if r.NextAttemptAt != nil || r.BouncedAt == nil || r.Attempts != len(asked) {
			t.Errorf("next at %v, bounced at %v, %d attempts for %d tries", r.NextAttemptAt, r.BouncedAt, r.Attempts, len(asked))
		}
		pauses := []time.Duration{
			time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
		}
		if len(asked) < len(pauses)+1 {
			t.Fatalf("asked %d times: %v", len(asked), asked)
		}
		for i, want := range pauses[:7] {
			got := asked[i+1].Sub(asked[i])
			if got < want*9/10 || got > want*11/10 {
				t.Errorf("pause %d was %s, want about %s", i+1, got, want)
			}
		}
		if age := asked[len(asked)-1].Sub(m.CreatedAt.Time); age != 24*time.Hour {
			t.Errorf("asked for the last time after %s", age)
		}
	})
}

// A process that slept through its lease does not send the message. The node that
// claims it next does (N1).
func TestMessageIsNotSentAfterTheLease(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		var slept sync.Once
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error {
			slept.Do(func() { w.clock.Add(15 * time.Minute) })
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		m := w.send(t, "bob@out.example")

		round(t, q, 1)
		if n := len(mx.Messages()); n != 0 {
			t.Fatalf("%d messages were sent after the lease", n)
		}
		w.wantRecipient(t, m, store.RecipientQueued, "")

		round(t, q, 1)
		mx.Wait(t, 1)
		w.wantRecipient(t, m, store.RecipientDelivered, "250")
	})
}

// A message whose lease expires before its turn is left for another claim.
func TestExpiredClaimIsNotDelivered(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		var slow sync.Once
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			slow.Do(func() { w.clock.Add(85 * time.Second) })
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) { c.MaxPerDomain = 1 })
		first, second := w.send(t, "bob@out.example"), w.send(t, "ann@out.example")

		round(t, q, 2)
		w.wantRecipient(t, first, store.RecipientDelivered, "250")
		w.wantRecipient(t, second, store.RecipientQueued, "")
		round(t, q, 0)

		w.clock.Add(5 * time.Second)
		round(t, q, 1)
		w.wantRecipient(t, second, store.RecipientDelivered, "250")
	})
}

// One domain never has more transactions than it may, and while they hang the
// mail for another domain is sent (O5).
func TestOneDomainDoesNotHoldUpAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2")
		hang := make(chan struct{})
		release := sync.OnceFunc(func() { close(hang) })
		defer release()
		slow := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0], Mail: func(string) error { <-hang; return nil }})
		good := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[1]})
		q := w.queue(t, slow.Port(), smtptest.Zones{}.Domain("slow.example", "127.0.0.1").Domain("good.example", "127.0.0.2"),
			func(c *queue.Config) { c.MaxPerDomain, c.MaxConns = 3, 10 })
		for range 100 {
			w.send(t, "bob@slow.example")
		}
		for range 30 {
			w.send(t, "bob@good.example")
		}
		stop := run(t, q)

		good.Wait(t, 30)
		if n := len(slow.Messages()); n != 0 {
			t.Errorf("the slow server accepted %d messages", n)
		}
		release()
		slow.Wait(t, 100)
		stop()

		if slow.MostConns() != 3 || good.MostConns() > 3 {
			t.Errorf("%d and %d connections at a time, want 3", slow.MostConns(), good.MostConns())
		}
	})
}

type countingListener struct {
	net.Listener
	n *atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

func TestTestModeTouchesNoNetwork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(t, 25, nil, func(c *queue.Config) { c.Resolver = noDNS{t} })
		tests := []struct {
			to      string
			status  store.RecipientStatus
			message store.MessageStatus
		}{
			{"anyone@out.example", store.RecipientDelivered, store.MessageDelivered},
			{"bounced@out.example", store.RecipientBounced, store.MessageBounced},
			{"hardbounce@out.example", store.RecipientBounced, store.MessageBounced},
			{"softbounce@out.example", store.RecipientBounced, store.MessageBounced},
			{"complained@out.example", store.RecipientComplained, store.MessageComplained},
			{"failed@out.example", store.RecipientFailed, store.MessageFailed},
			{"suppressed@out.example", store.RecipientSuppressed, store.MessageFailed},
			{"opened@out.example", store.RecipientDelivered, store.MessageDelivered},
			{"clicked@out.example", store.RecipientDelivered, store.MessageDelivered},
			{"delayed@out.example", store.RecipientQueued, store.MessageQueued},
			{"Ann+Bounced@out.example", store.RecipientBounced, store.MessageBounced},
			{"ann+bounced+failed@out.example", store.RecipientFailed, store.MessageFailed},
			{"bounced+x@out.example", store.RecipientDelivered, store.MessageDelivered},
			{"missing@" + storetest.Domain, store.RecipientDelivered, store.MessageDelivered},
		}
		var sent []store.Message
		for _, tt := range tests {
			sent = append(sent, storetest.Sent(t, w.store, w.inbox, []string{tt.to}, func(m *store.NewMessage) { m.TestMode = true }))
		}

		round(t, q, len(tests))

		for i, tt := range tests {
			w.wantRecipient(t, sent[i], tt.status, "")
			if got := w.message(t, sent[i]).Status; got != tt.message {
				t.Errorf("%s: the message is %s, want %s", tt.to, got, tt.message)
			}
		}
		w.clock.Add(2 * time.Minute)
		round(t, q, 1)
		w.wantRecipient(t, sent[9], store.RecipientDelivered, "250")
		for _, tt := range tests { // a simulated bounce is not one of real mail
			w.wantListed(t, strings.ToLower(tt.to), "")
		}
	})
}

// noDNS fails the test when it is asked.
type noDNS struct{ t *testing.T }

func (d noDNS) LookupMX(context.Context, string) ([]*net.MX, error) {
	d.t.Error("MX was looked up")
	return nil, nil
}

func (d noDNS) LookupTXT(context.Context, string) ([]string, error) {
	d.t.Error("a text record was looked up")
	return nil, nil
}

func (d noDNS) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	d.t.Error("an address was looked up")
	return nil, nil
}

func (d noDNS) LookupAddr(context.Context, string) ([]string, error) {
	d.t.Error("a name was looked up")
	return nil, nil
}

func TestDeletedContentFailsTheMail(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		missing := "aa/missing"
		m := storetest.Sent(t, w.store, w.inbox, []string{"bob@out.example"}, func(m *store.NewMessage) {
			m.Content.BlobKey, m.Size = &missing, 300_000
		})

		round(t, q, 1)

		w.wantRecipient(t, m, store.RecipientFailed, "554 5.6.0")
		if len(mx.Messages()) != 0 {
			t.Error("something was sent")
		}
	})
}

// When it stops, the queue finishes the current transaction and begins
// no other.
func TestRunFinishesStartedDeliveries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begun, finish := make(chan struct{}), make(chan struct{})
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			close(begun)
			<-finish
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) { c.MaxPerDomain = 1 })
		first := w.send(t, "bob@out.example")
		second := w.send(t, "ann@out.example")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx) }()

		<-begun
		cancel()
		close(finish)
		if err := <-done; err != nil {
			t.Fatal(err)
		}

		w.wantRecipient(t, first, store.RecipientDelivered, "250")
		r := w.wantRecipient(t, second, store.RecipientQueued, "")
		if r.NextAttemptAt == nil || r.NextAttemptAt.After(w.clock.Now()) {
			t.Errorf("the mail that was not begun is due at %v, not now", r.NextAttemptAt)
		}
	})
}

// A server that does not respond delays the shutdown by at most the grace period;
// the message is due again at once.
func TestRunCancelsHangingWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		hangs := make(chan struct{}, 1)
		smtptest.Script{Banner: "220 hello", Reply: func(line string) string {
			if strings.HasPrefix(line, "MAIL") {
				hangs <- struct{}{}
				return smtptest.Hang
			}
			return "250 ok"
		}}.Serve(t, l)
		q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"),
			func(c *queue.Config) { c.Grace = time.Millisecond })
		m := w.send(t, "bob@out.example")
		stop := run(t, q)

		<-hangs
		stop()

		r := w.wantRecipient(t, m, store.RecipientQueued, "")
		if r.NextAttemptAt == nil || r.NextAttemptAt.After(w.clock.Now()) {
			t.Errorf("the mail is due at %v, not now", r.NextAttemptAt)
		}
	})
}

// Not parallel: no other test's goroutines may be about.
func TestRunLeavesNoGoroutine(t *testing.T) { //nolint:paralleltest // see above
	w := newWorld(t, storetest.Config(t, storetest.SQLite))
	mx := smtptest.NewMX(t, smtptest.MXConfig{})
	q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
	other := storetest.Inbox(t, w.store)
	before := goleak.IgnoreCurrent()
	for range 20 {
		w.send(t, "bob@out.example", other.Address)
	}
	stop := run(t, q)
	messages := mx.Wait(t, 20)
	stop()
	if len(messages) != 20 {
		t.Errorf("%d messages", len(messages))
	}
	// The fake MX notices that its connections are closed a moment later.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/emersion/go-smtp.(*Server).handleConn"))
}
