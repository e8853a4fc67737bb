package store_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// BenchmarkCommit writes batches of 4 KB messages to 1,000 inboxes without the
// queue. It reports, for each message, the CPU time of this
// process in user and in system mode and what the database was asked to do: the
// round trips to PostgreSQL, or the bytes that SQLite wrote.
func BenchmarkCommit(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(string(e), func(b *testing.B) {
			cfg := benchConfig(b, e)
			var trips atomic.Int64
			if e == storetest.PostgreSQL {
				cfg.Database = countTrips(b, cfg.Database, &trips)
			}
			s := storetest.OpenConfig(b, cfg)
			account := storetest.Account(b, s)
			inboxes := make([]store.Inbox, 1000)
			for i := range inboxes {
				inboxes[i] = storetest.Inbox(b, s, func(in *store.Inbox) { in.AccountID = account.Seq })
			}
			for _, size := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) { benchCommit(b, s, inboxes, size, &trips) })
			}
		})
	}
}

func benchCommit(b *testing.B, s *store.Store, inboxes []store.Inbox, size int, trips *atomic.Int64) {
	raw := bytes.Repeat([]byte("0123456789abcde\n"), 256)
	text := string(raw[:3600])
	next := 0
	b.ReportAllocs()
	b.ResetTimer()
	user, sys := userAndSystem(b)
	asked, written := trips.Load(), bytesWritten(b)
	for range b.N {
		batch := make([]*store.NewMessage, size)
		for i := range batch {
			batch[i] = storetest.NewReceived(inboxes[next*7919%len(inboxes)], func(m *store.NewMessage) {
				m.Content.Raw = raw
				m.Content.Body = &store.JSON[store.Body]{V: store.Body{Text: text}}
				m.Content.Snippet = text[:200]
				m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{}}
			})
			next++
		}
		if err := s.CommitBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	u, y := userAndSystem(b)
	per := func(n int64) float64 { return float64(n) / float64(b.N*size) }
	b.ReportMetric(per((u-user)/1000), "user-µs/mail")
	b.ReportMetric(per((y-sys)/1000), "sys-µs/mail")
	if n := trips.Load() - asked; n > 0 {
		b.ReportMetric(float64(n)/float64(b.N), "trips/batch")
	} else {
		b.ReportMetric(per((bytesWritten(b)-written)/1000), "kB/mail")
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "messages/s")
}

func userAndSystem(b *testing.B) (user, sys int64) {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano(), u.Stime.Nano()
}

// bytesWritten is what this process has passed to write calls.
func bytesWritten(b *testing.B) (n int64) {
	b.Helper()
	f, err := os.Open("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var read int64
	if _, err := fmt.Fscanf(f, "rchar: %d\nwchar: %d\n", &read, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// countTrips returns an address of the same database through a proxy that
// counts how often the client sent something.
func countTrips(b *testing.B, database string, trips *atomic.Int64) string {
	b.Helper()
	u, err := url.Parse(database)
	if err != nil {
		b.Fatal(err)
	}
	q := u.Query()
	socket := q.Get("host") + "/.s.PGSQL.5432"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
			go func() {
				buf := make([]byte, 1<<20)
				for {
					n, err := client.Read(buf)
					if err != nil {
						_ = server.Close()
						return
					}
					trips.Add(1)
					if _, err := server.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return u.String()
}

// benchConfig is a database that is as durable as in production: SQLite on the
// disk of the temporary folder, PostgreSQL with fsync.
func benchConfig(b *testing.B, e storetest.Engine) store.Config {
	b.Helper()
	if e == storetest.SQLite {
		return storetest.Config(b, e)
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
	cfg := storetest.EmptyConfig(b, storetest.SQLite)
	cfg.Database = server.URL(testpg.DefaultDatabase)
	if _, err := store.Migrate(b.Context(), cfg); err != nil {
		b.Fatal(err)
	}
	return cfg
}
