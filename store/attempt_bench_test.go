package store_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// BenchmarkRecordAttempt records, for emails of 4 KB with a recipient each, that
// the mail was signed and sent: 20 at a time, as the queue does.
func BenchmarkRecordAttempt(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(string(e), func(b *testing.B) {
			s := storetest.OpenConfig(b, benchConfig(b, e))
			account := storetest.Account(b, s)
			claimed := fillQueue(b, s, account.Seq)
			signature := "DKIM-Signature: " + string(bytes.Repeat([]byte("x"), 900)) + "\r\n"

			b.ReportAllocs()
			b.ResetTimer()
			cpu := cpuTime(b)
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					for c := range claimed {
						if err := s.RecordAttempt(b.Context(), attempt(c, store.RecipientSent, func(a *store.Attempt) { a.Signature = signature })); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
			b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "µs-cpu/op")
		})
	}
}

// fillQueue queues b.N emails and claims them.
func fillQueue(b *testing.B, s *store.Store, account int64) <-chan store.Claimed {
	b.Helper()
	raw := bytes.Repeat([]byte("0123456789abcdef"), 256)
	for at := 0; at < b.N; at += 100 {
		batch := make([]*store.NewEmail, min(100, b.N-at))
		for i := range batch {
			batch[i] = storetest.NewEmail(account, []string{fmt.Sprintf("bob%d@out.example", at+i)}, func(n *store.NewEmail) { n.Content.Raw = raw })
		}
		if _, err := s.EnqueueBatch(b.Context(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	claimed := make(chan store.Claimed, b.N)
	for len(claimed) < b.N {
		cs, err := s.ClaimRecipients(b.Context(), 100, time.Hour, nil)
		if err != nil || len(cs) == 0 {
			b.Fatalf("claimed %d: %v", len(claimed), err)
		}
		for _, c := range cs {
			claimed <- c
		}
	}
	close(claimed)
	return claimed
}
