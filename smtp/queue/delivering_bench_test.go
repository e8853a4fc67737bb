package queue_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// BenchmarkQueue delivers queued messages of 4 KB to the MX hosts of 20 domains:
// claim, signature, transaction and synced record.
func BenchmarkQueue(b *testing.B) {
	for _, tt := range []struct {
		name   string
		signed bool
		domain string
	}{{"unsigned", false, "out%d.example"}, {"signed", true, "out%d.example"}, {"local", true, storetest.Domain}} {
		b.Run(tt.name, func(b *testing.B) {
			quiet := slog.New(slog.DiscardHandler)
			w := &world{clock: nil, store: storetest.Open(b, storetest.SQLite, storetest.WithLog(quiet))}
			w.inbox = storetest.Inbox(b, w.store)
			mx := smtptest.NewMX(b, smtptest.MXConfig{})
			zones := smtptest.Zones{}
			for i := range 20 {
				zones.Domain(fmt.Sprintf("out%d.example", i), mx.IP())
			}
			q := w.benchQueue(b, mx.Port(), zones, quiet, tt.signed)
			raw := make([]byte, 0, 4096)
			raw = append(raw, "From: "+w.inbox.Address+"\r\nSubject: bench\r\n\r\n"...)
			for len(raw) < 4000 {
				raw = append(raw, "A line of text as people write it in a message, more or less.\r\n"...)
			}
			last := w.fill(b, raw, tt.domain)

			b.ResetTimer()
			began := time.Now()
			for n := 0; n < b.N; {
				got, err := q.RunOnce(b.Context())
				if err != nil || got == 0 {
					b.Fatalf("claimed %d of %d: %v", n, b.N, err)
				}
				n += got
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "messages/s")
			w.wantRecipient(b, last, store.RecipientDelivered, "250")
		})
	}
}

func (w *world) benchQueue(
	b *testing.B, port uint16, zones smtptest.Zones, log *slog.Logger, signed bool, edits ...func(*queue.Config),
) *queue.Queue {
	b.Helper()
	r, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: w.store, Domain: storetest.Domain, TempDir: b.TempDir(), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	cfg := queue.Config{
		Store: w.store, Local: r, Domain: storetest.Domain, HELO: "mail.in.example", MXPort: port, Log: log,
		Resolver: outbound.NewResolver(smtptest.NewDNS(b, zones)), Guard: loopback(),
	}
	if signed {
		if err := queue.EnsureKeys(b.Context(), w.store, storetest.Domain); err != nil {
			b.Fatal(err)
		}
		cfg.Signer = queue.NewSigner(w.store, nil)
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	q, err := queue.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(q.Close)
	return q
}

// fill queues b.N messages and returns the last.
func (w *world) fill(b *testing.B, raw []byte, domain string) (last store.Message) {
	b.Helper()
	to := "user@" + domain
	if domain == storetest.Domain {
		to = storetest.Inbox(b, w.store).Address
	}
	for i := range b.N {
		rcpt := to
		if domain != storetest.Domain {
			rcpt = fmt.Sprintf(to, i%20)
		}
		last = storetest.Sent(b, w.store, w.inbox, []string{rcpt}, func(m *store.NewMessage) {
			m.Content.Raw, m.FromEmail = raw, w.inbox.Address
		})
	}
	return last
}
