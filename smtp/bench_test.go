package smtp

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const benchInboxes = 1000

func benchStore(b *testing.B) (*store.Store, []store.Inbox) {
	b.Helper()
	s := storetest.OpenSQLite(b)
	account := storetest.Account(b, s)
	inboxes := make([]store.Inbox, benchInboxes)
	for i := range inboxes {
		inboxes[i] = storetest.Inbox(b, s, func(in *store.Inbox) { in.AccountID = account.Seq })
	}
	return s, inboxes
}

func quiet(c *ReceiverConfig) { c.Log = slog.New(slog.DiscardHandler) }

// BenchmarkReceive is the path behind the wire: read, extract, store with
// fsync, for 64 callers at once.
func BenchmarkReceive(b *testing.B) {
	s, inboxes := benchStore(b)
	r := newReceiver(b, s, quiet)
	var n atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			raw := r.NewSpool()
			if _, err := raw.Write(benchMail(i, 4<<10)); err != nil {
				b.Error(err)
			}
			env := Envelope{MailFrom: "no-reply@out.example", RcptTo: []string{inboxes[i%benchInboxes].Address}}
			if _, err := r.Receive(b.Context(), env, raw); err != nil {
				b.Error(err)
			}
			if err := raw.Close(); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}

// BenchmarkServer is the whole way, over loopback, with 64 clients in the same
// process.
func BenchmarkServer(b *testing.B) {
	s, inboxes := benchStore(b)
	_, addr := serve(b, newReceiver(b, s, quiet), func(c *ServerConfig) { c.Log = slog.New(slog.DiscardHandler) })
	var n atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		r := bufio.NewReader(conn)
		say := func(format string, args ...any) {
			if format != "" {
				if _, err := fmt.Fprintf(conn, format, args...); err != nil {
					b.Error(err)
				}
			}
			for {
				line, err := r.ReadSlice('\n')
				if err != nil || line[0] > '3' {
					b.Errorf("%s %v", line, err)
				}
				if err != nil || line[3] == ' ' {
					return
				}
			}
		}
		say("")
		say("EHLO client.example\r\n")
		for pb.Next() {
			i := int(n.Add(1))
			say("MAIL FROM:<no-reply@out.example>\r\n")
			say("RCPT TO:<%s>\r\n", inboxes[i%benchInboxes].Address)
			say("DATA\r\n")
			say("%s.\r\n", benchMail(i, 4<<10))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}
