package inbound

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/smtp"
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
		text += fmt.Sprintf("This is line %d of a message with something to say to its reader.\r\n", i)
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
			env := smtp.Envelope{MailFrom: "no-reply@out.example", RcptTo: []string{inboxes[i%benchInboxes].Address}}
			if _, err := r.Receive(b.Context(), env, raw); err != nil {
				b.Error(err)
			}
			if err := raw.Close(); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// benchClients is how many clients send to the server at once.
const benchClients = 64

// serveBench starts a server that lets all clients of a benchmark in, which have one
// address.
func serveBench(tb testing.TB, s *store.Store) (addr string) {
	tb.Helper()
	_, addr = serve(tb, newReceiver(tb, s, quiet), func(c *ServerConfig) {
		c.Log, c.MaxConnsPerIP = slog.New(slog.DiscardHandler), 1000
	})
	return addr
}

// benchClient is a connection to the server.
type benchClient struct {
	conn net.Conn
	r    *bufio.Reader
	mail *benchMail
}

func newBenchClient(addr string) (*benchClient, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &benchClient{conn, bufio.NewReader(conn), newBenchMail()}
	err = c.say("")
	if err == nil {
		err = c.say("EHLO client.example\r\n")
	}
	return c, err
}

// say sends a command and reads the reply, which must not be an error.
func (c *benchClient) say(format string, args ...any) error {
	if format != "" {
		if _, err := fmt.Fprintf(c.conn, format, args...); err != nil {
			return err
		}
	}
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line[0] > '3' {
			return fmt.Errorf("the server replied %q", line)
		}
		if line[3] == ' ' {
			return nil
		}
	}
}

// send sends the message with this number.
func (c *benchClient) send(to string, number int) error {
	for _, command := range []string{"MAIL FROM:<no-reply@out.example>\r\n", "RCPT TO:<" + to + ">\r\n", "DATA\r\n"} {
		if err := c.say("%s", command); err != nil {
			return err
		}
	}
	return c.say("%s", c.mail.number(number))
}

// BenchmarkServer sends over loopback, with benchClients clients in the same process.
func BenchmarkServer(b *testing.B) {
	s, inboxes := benchStore(b)
	addr := serveBench(b, s)
	var n atomic.Int64
	b.SetParallelism(max(1, benchClients/runtime.GOMAXPROCS(0)))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c, err := newBenchClient(addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = c.conn.Close() }()
		for pb.Next() {
			i := int(n.Add(1))
			if err := c.send(inboxes[i%benchInboxes].Address, i); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// The server of BenchmarkServer takes mail from all its clients at once.
func TestServerAcceptsAllClientsOfTheBenchmark(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	addr := serveBench(t, s)
	clients := make([]*benchClient, benchClients)
	for i := range clients {
		c, err := newBenchClient(addr)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		defer func() { _ = c.conn.Close() }()
		clients[i] = c
	}
	for i, c := range clients {
		if err := c.send(in.Address, i); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	}
}
