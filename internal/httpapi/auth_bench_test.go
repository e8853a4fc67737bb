package httpapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// BenchmarkAuthentication measures the work before an operation begins: the key
// lookup, the checks of address and scopes, and the counts against the limits,
// including that on sends. The aim is 50 µs on SQLite, without a write.
func BenchmarkAuthentication(b *testing.B) {
	for _, e := range storetest.Engines(b) {
		b.Run(string(e), func(b *testing.B) {
			var calls atomic.Int64
			begin := time.Now()
			now := func() time.Time { return begin.Add(time.Duration(calls.Load()) * 2 * time.Second) } // 30 in a window
			st := storetest.Open(b, e, storetest.WithNow(now))
			account := storetest.Account(b, st).Seq
			for i := range 1000 { // other keys in the table
				storetest.Key(b, st, account, fmt.Sprint("other", i))
			}
			storetest.Key(b, st, account, "measured", func(k *store.Key) {
				k.AllowedIPs.V, k.Scopes.V = []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"read", "send"}
			})
			c := &Chain{cfg: Config{RateLimits: true}, store: st, now: now}
			info := &requestInfo{Response: Response{IP: netip.MustParseAddr("2001:db8::1")}, w: httptest.NewRecorder()}
			ctx := context.WithValue(b.Context(), infoKey{}, info)
			auth := gen.BearerAuth{Token: storetest.Secret("measured"), Roles: []string{"send", "admin"}}
			b.ReportAllocs()
			spent := cpuTime(b)
			for b.Loop() {
				calls.Add(1)
				if _, err := c.HandleBearerAuth(ctx, gen.SendMessageOperation, auth); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpuTime(b)-spent).Nanoseconds())/float64(b.N), "cpu-ns/op") // excludes other work of the machine
		})
	}
}

// cpuTime returns the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
