package inbound

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
			c.cmd("250", "MAIL FROM:<a@out.example>")
			c.cmd("250", "RCPT TO:<%s>", bot)
			c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(raw), raw))
			c.want("552 5.6.0")
			c.cmd("250", "NOOP")
		}
		if n := len(list(t, s, in)); n != stored {
			t.Errorf("%d messages, want %d", n, stored)
		}
	})
}

// S10: control characters and bytes outside ASCII, in 12 places.
func TestNULAndEightBit(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		const begin = "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\n"
		tests := []struct{ name, say, want string }{
			{"NUL in a command", "EHLO x\r\nNOOP \x00\r\n", "220 250 501"},
			{"NUL for a command", "\x00\r\n", "220 501"},
			{"NUL in the sender", "EHLO x\r\nMAIL FROM:<a\x00@out.example>\r\n", "220 250 501"},
			{"NUL in a recipient", "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<bot\x00@in.example>\r\n", "220 250 250 501"},
			{"NUL in the header", begin + "DATA\r\nSubject: a\x00b\r\n\r\n.\r\n", "220 250 250 250 354 554"},
			{"NUL in the body", begin + "DATA\r\n" + rawMail("a\x00b") + ".\r\n", "220 250 250 250 354 554"},
			{"NUL in a chunk", begin + "BDAT 3 LAST\r\n\x00\r\n", "220 250 250 250 554"},
			{"8-bit sender without SMTPUTF8", "EHLO x\r\nMAIL FROM:<änn@out.example>\r\n", "220 250 553"},
			{"8-bit recipient without SMTPUTF8", "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<bót@in.example>\r\n", "220 250 250 553"},
			{"invalid UTF-8 with SMTPUTF8", "EHLO x\r\nMAIL FROM:<\xe4nn@out.example> SMTPUTF8\r\n", "220 250 501"},
			{"8-bit sender with SMTPUTF8", "EHLO x\r\nMAIL FROM:<änn@bücher.example> SMTPUTF8\r\nRCPT TO:<" + bot + ">\r\nBDAT 2 LAST\r\n\r\n", "220 250 250 250 250"},
			{"8-bit header", begin + "DATA\r\nSubject: Grüße 日本\r\nFrom: Jörg <j@out.example>\r\n\r\nHallo.\r\n.\r\n", "220 250 250 250 354 250"},
		}
		for _, tt := range tests {
			if got := strings.Join(codes(talk(t, addr, tt.say)), " "); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
		}
		all := list(t, s, in)
		if len(all) != 2 {
			t.Fatalf("%d messages, want 2", len(all))
		}
		if m := all[0]; m.Subject != "Grüße 日本" || m.Addresses.V.From == nil || m.Addresses.V.From.Name != "Jörg" {
			t.Errorf("subject %q, from %v", m.Subject, m.Addresses.V.From)
		}
	})
}

// Row S12 of docs/testing.md.
func TestMessageSizes(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		const limit = 2_000_000
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.MaxSize = limit })
		c := hello(t, addr)
		for size, want := range map[string]string{
			"2000001": "552 5.3.4", "5000000000": "552 5.3.4", strings.Repeat("9", 18): "552 5.3.4",
			strings.Repeat("9", 20): "501", strings.Repeat("9", 21): "501", "5e9": "501", "-1": "501", "+1": "501", "": "501", "0x10": "501",
		} {
			c.cmd(want, "MAIL FROM:<a@out.example> SIZE=%s", size)
		}
		for i, n := range []int{limit, limit + 1} {
			c.cmd("250", "MAIL FROM:<a@out.example> SIZE=%d", limit)
			c.cmd("250", "RCPT TO:<%s>", bot)
			c.cmd("354", "DATA")
			c.send(sized(n) + ".\r\n")
			c.want([]string{"250", "552 5.3.4"}[i])
		}
		if m := only(t, s, in); m.Size != limit {
			t.Errorf("stored %d bytes, want %d", m.Size, limit)
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
		for _, way := range []string{"DATA", "BDAT 1000000000", "BDAT 4000000000 LAST"} {
			ours, theirs := net.Pipe() // what is written has been read
			conn := &countingConn{Conn: ours}
			run(t, srv, newWire(srv, conn))
			replies := make(chan string)
			go func() {
				b, _ := io.ReadAll(theirs)
				replies <- string(b)
			}()
			_, err := fmt.Fprintf(theirs, "EHLO x\r\nMAIL FROM:<a@out.example> SIZE=100\r\nRCPT TO:<%s>\r\n%s\r\n", bot, way)
			for sent := 0; err == nil && sent < flood; sent += len(piece) {
				_, err = theirs.Write(piece)
			}
			_ = theirs.Close()
			srv.running.Wait()
			if said := <-replies; !strings.HasSuffix(said, "552 5.3.4 Message too large\r\n") {
				t.Errorf("%s: %q", way, said)
			}
			if n := conn.read.Load(); n > limit+1<<20 {
				t.Errorf("%s: read %d bytes, limit %d", way, n, limit)
			}
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

		got := codes(talk(t, addr, "EHLO x\r\nMAIL FROM:<a@out.example>\r\n"+strings.Repeat("RCPT TO:<"+bot+">\r\n", 5000)))
		count := map[string]int{}
		for _, code := range got[3:] {
			count[code]++
		}
		if count["250"] != 100 || count["452"] != maxOverRcpts || count["421"] != 1 || len(got) != 3+201 {
			t.Errorf("replies to 5,000 recipients: %v", count)
		}
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
	g := newUnknownRcpts(func() time.Time { return now })
	for i := range 3 * maxGuessers {
		g.allow(network(ipv4(i)))
	}
	if n := len(g.by); n > maxGuessers {
		t.Errorf("%d networks are remembered", n)
	}
	old := now
	now = now.Add(guessTime)
	for i := range maxGuessers {
		g.allow(network(ipv4(-i)))
	}
	for from, who := range g.by {
		if who.since.Equal(old) {
			t.Fatalf("%v is remembered after its time", from)
		}
	}
}
