package inbound

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store/storetest"
)

// Row S9 of docs/testing.md.
func TestLongTextLines(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		c := hello(t, addr)
		stored := 0
		for _, n := range []int{998, 2000, 10_000, 64 << 10} {
			raw := rawMail(strings.Repeat("x", n), "end")
			c.begin("a@out.example", bot)
			c.send(raw + ".\r\n")
			c.want("250")
			stored++
			if got := readRaw(t, s, list(t, s, in)[0]); got != raw {
				t.Errorf("a line of %d bytes was changed", n)
			}
		}
		for _, n := range []int{64<<10 + 1, 10 << 20} {
			raw := rawMail(strings.Repeat("x", n), "end")
			c.begin("a@out.example", bot)
			c.send(raw + ".\r\n")
			c.want("552 5.6.0")
			c.cmd("250", "NOOP") // one reply
		}
		if n := len(list(t, s, in)); n != stored {
			t.Errorf("%d messages, want %d", n, stored)
		}
	})
}

// A client that announces little and sends without end is cut off within a
// megabyte of the limit (S12).
func TestFloodIsCutOff(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		const limit, flood = 1 << 20, 1 << 30
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		srv := newServer(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.MaxSize = limit })
		piece := []byte(strings.Repeat(strings.Repeat("x", 998)+"\r\n", 64))
		ours, theirs := net.Pipe() // what is written has been read
		conn := &countingConn{Conn: ours}
		run(t, srv, newConn(srv, conn))
		replies := make(chan string)
		go func() {
			b, _ := io.ReadAll(theirs)
			replies <- string(b)
		}()
		_, err := fmt.Fprintf(theirs, "EHLO x\r\nMAIL FROM:<a@out.example> SIZE=100\r\nRCPT TO:<%s>\r\nDATA\r\n", bot)
		for sent := 0; err == nil && sent < flood; sent += len(piece) {
			_, err = theirs.Write(piece)
		}
		_ = theirs.Close()
		if said := <-replies; !strings.HasSuffix(said, "552 5.3.4 Message too large\r\n") {
			t.Errorf("%q", said)
		}
		if n := conn.read.Load(); n > limit+1<<20 {
			t.Errorf("read %d bytes, limit %d", n, limit)
		}
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

type countingConn struct {
	net.Conn
	read atomic.Int64
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// Row S13 of docs/testing.md.
func TestRecipientsAreLimited(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		for i := range 100 {
			c.cmd("250", "RCPT TO:<bot+%d@in.example>", i)
		}
		c.cmd("452 4.5.3", "RCPT TO:<bot+101@in.example>")
		c.cmd("354", "DATA")
		c.send(rawMail("Hi.") + ".\r\n")
		c.want("250")
		only(t, s, in)
	})
}

// Unknown recipients are counted for a network, over all its connections; the
// mail of others, and known recipients, are not held up (S13).
func TestUnknownRecipientsAreLimited(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	clock := storetest.NewClock(time.Now())
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.Now = clock.Now })
	guess := func(n int) (replies []string) {
		say := "EHLO x\r\nMAIL FROM:<a@out.example>\r\n"
		for i := range n {
			say += fmt.Sprintf("RCPT TO:<guess%d@in.example>\r\n", i)
		}
		return codes(talk(t, addr, say))[3:]
	}
	refused := 0
	for refused < maxGuesses {
		for _, code := range guess(5) {
			if code != "550" {
				t.Fatalf("reply to unknown recipient %d: %s", refused+1, code)
			}
			refused++
		}
	}
	for range 3 {
		if got := strings.Join(guess(5), " "); got != "421" {
			t.Errorf("replies to further recipients: %s", got)
		}
	}
	c := hello(t, addr)
	c.begin("a@out.example", bot)
	c.send(rawMail("Hi.") + ".\r\n")
	c.want("250")
	only(t, s, in)

	other := dialFrom(t, "127.0.0.77", addr)
	other.want("220")
	other.cmd("250", "EHLO x")
	other.cmd("250", "MAIL FROM:<a@out.example>")
	other.cmd("550", "RCPT TO:<guess@in.example>")

	clock.Add(guessTime)
	if got := strings.Join(guess(2), " "); got != "550 550" {
		t.Errorf("after %v: %s", guessTime, got)
	}
}

// Row S13 of docs/testing.md.
func TestRememberedGuessersAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := unknownRcpts{now: func() time.Time { return now }}
	for i := range 3 * maxGuessers {
		g.allow(netguard.ClientNetwork(ipv4(i)))
		if n := len(g.by); n > maxGuessers {
			t.Fatalf("%d networks are remembered", n)
		}
	}
	now = now.Add(guessTime)
	g.allow(netguard.ClientNetwork(ipv4(-1)))
	if n := len(g.by); n != 1 {
		t.Errorf("%d networks are remembered after their time", n)
	}
}
