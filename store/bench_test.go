package store_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

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

// BenchmarkAddReceived stores 4 KB messages in 1,000 inboxes and reports messages a
// second and the median time of a call.
func BenchmarkAddReceived(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(string(e), func(b *testing.B) {
			s := storetest.OpenConfig(b, benchConfig(b, e))
			account := storetest.Account(b, s)
			inboxes := make([]store.Inbox, 1000)
			for i := range inboxes {
				inboxes[i] = storetest.Inbox(b, s, func(in *store.Inbox) { in.AccountID = account.Seq })
			}
			for _, callers := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchAddReceived(b, s, inboxes, callers) })
			}
		})
	}
}

func benchAddReceived(b *testing.B, s *store.Store, inboxes []store.Inbox, callers int) {
	raw := bytes.Repeat([]byte("0123456789abcdef"), 256)
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	if callers == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
		b.SetParallelism(1)
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	one := func() {
		n := next.Add(1) - 1
		m := storetest.NewReceived(inboxes[n*7919%int64(len(inboxes))], func(m *store.NewMessage) { m.Content.Raw = raw })
		begin := time.Now()
		if _, err := s.AddReceived(b.Context(), []*store.NewMessage{m}, nil); err != nil {
			b.Error(err)
		}
		took[n] = time.Since(begin)
	}
	if callers == 1 {
		for range b.N {
			one()
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/mail")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// cpuTime is what this process has used: unlike the wall clock, it means the
// same on a machine that others use too. PostgreSQL's share is not in it.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
