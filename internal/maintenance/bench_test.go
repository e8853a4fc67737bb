package maintenance_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const (
	// senders is the number of concurrent senders.
	senders = 8
	// oldMail is the maximum number of messages to delete in a round.
	oldMail = 20_000
)

// BenchmarkMailDuringRetention stores messages of 4 KB, with and without a
// concurrent round of retention. It reports the time to store a message and the
// number of messages whose content is deleted per second.
func BenchmarkMailDuringRetention(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(string(e), func(b *testing.B) {
			var c clock
			s := storetest.OpenConfig(b, benchConfig(b, e, &c))
			account := storetest.Account(b, s)
			inboxes := make([]store.Inbox, 200)
			for i := range inboxes {
				inboxes[i] = storetest.Inbox(b, s, func(in *store.Inbox) { in.AccountID, in.RetentionDays = account.Seq, 1 })
			}
			b.Run("alone", func(b *testing.B) { storeMail(b, s, inboxes) })
			b.Run("with retention", func(b *testing.B) { benchRetention(b, s, inboxes, &c) })
		})
	}
}

// benchConfig is a database with the durability of production.
func benchConfig(b *testing.B, e storetest.Engine, c *clock) store.Config {
	b.Helper()
	if e == storetest.SQLite {
		return storetest.Config(b, e, storetest.WithNow(c.now))
	}
	server, err := testpg.Start(b.Context(), testpg.Options{Fsync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(); err != nil {
			b.Error(err)
		}
	})
	cfg := storetest.EmptyConfig(b, storetest.SQLite, storetest.WithNow(c.now))
	cfg.Database = server.URL(testpg.DefaultDatabase)
	if _, err := store.Migrate(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	return cfg
}

func benchRetention(b *testing.B, s *store.Store, inboxes []store.Inbox, c *clock) {
	fill(b, s, inboxes)
	c.move(25 * time.Hour)
	retention := maintenance.NewRetention(maintenance.RetentionConfig{Store: s, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(b.Context())
	var gone store.Removed
	var took time.Duration
	var deleting sync.WaitGroup
	deleting.Go(func() {
		began := time.Now()
		gone, _ = retention.RunOnce(ctx) // ended by cancel
		took = time.Since(began)
	})
	storeMail(b, s, inboxes)
	cancel()
	deleting.Wait()
	b.ReportMetric(float64(gone.Contents)/took.Seconds(), "deleted/s")
}

// fill stores old messages up to a number.
func fill(b *testing.B, s *store.Store, inboxes []store.Inbox) {
	b.Helper()
	parallel(oldMail, func(i int) { storeOne(b, s, inboxes, i) })
}

// storeMail stores b.N messages.
func storeMail(b *testing.B, s *store.Store, inboxes []store.Inbox) {
	b.Helper()
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	parallel(b.N, func(i int) { took[i] = storeOne(b, s, inboxes, i) })
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	for name, d := range map[string]time.Duration{
		"p50-µs": took[len(took)/2], "p99-µs": took[len(took)*99/100], "max-µs": took[len(took)-1],
	} {
		b.ReportMetric(float64(d.Microseconds()), name)
	}
}

// storeOne stores a message and returns the time it took.
func storeOne(b *testing.B, s *store.Store, inboxes []store.Inbox, i int) time.Duration {
	raw := bytes.Repeat([]byte("0123456789abcdef"), 256)
	m := storetest.NewReceived(inboxes[i*7919%len(inboxes)], func(m *store.NewMessage) { m.Content.Raw = raw })
	began := time.Now()
	if _, err := s.AddReceived(b.Context(), []*store.NewMessage{m}, nil); err != nil {
		b.Error(err)
	}
	return time.Since(began)
}

// parallel runs n calls, some of them concurrently.
func parallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for first := range senders {
		all.Go(func() {
			for i := first; i < n; i += senders {
				do(i)
			}
		})
	}
	all.Wait()
}
