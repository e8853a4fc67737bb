package smtp

import (
	"bufio"
	"bytes"
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

// benchMail is a text mail of about 4 KB with places for a number.
type benchMail struct {
	text   []byte
	places []int
}

func newBenchMail() *benchMail {
	const size, place = 4 << 10, "@@@@@@@@"
	text := "Received: from out.example by mx.example; Tue, 2 Jan 2024 03:04:05 +0000\r\n" +
		"From: Service <no-reply@out.example>\r\nTo: you@in.example\r\nSubject: Your code " + place + "\r\n" +
		"Date: Tue, 2 Jan 2024 03:04:05 +0000\r\nMessage-ID: <" + place + "@out.example>\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\n\r\n" +
		"Your code is 482913.\r\n\r\nhttps://out.example/verify?token=" + place + "\r\n\r\n"
	for i := 0; len(text) < size; i++ {
		text += fmt.Sprintf("This is line %d of a mail that has something to say to its reader.\r\n", i)
	}
	m := &benchMail{text: []byte(text + ".\r\n")}
	for at := range m.text {
		if bytes.HasPrefix(m.text[at:], []byte(place)) {
			m.places = append(m.places, at)
		}
	}
	return m
}

// number returns the mail with this number in it, and the end of data behind.
func (m *benchMail) number(n int) []byte {
	for _, at := range m.places {
		copy(m.text[at:], fmt.Appendf(nil, "%08d", n))
	}
	return m.text
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
		m := newBenchMail()
		for pb.Next() {
			i := int(n.Add(1))
			raw := r.NewSpool()
			if _, err := raw.Write(bytes.TrimSuffix(m.number(i), endOfData)); err != nil {
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
		r, m := bufio.NewReader(conn), newBenchMail()
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
			say("%s", m.number(i))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mails/s")
}
