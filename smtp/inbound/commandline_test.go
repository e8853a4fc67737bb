package inbound

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// A line that a bare LF ends is not run, and neither is what follows it (S3).
func TestBareLineFeedInCommandsIsRefused(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		transaction := "MAIL FROM:<a@out.example>\nRCPT TO:<" + bot + ">\nDATA\n" + strings.ReplaceAll(rawMail("Hi."), "\r\n", "\n") + ".\nQUIT\n"
		for say, want := range map[string][]string{
			"EHLO x\n" + transaction:                                                 {"220", "500"},
			"EHLO x\nMAIL FROM:<a@x.example>\n":                                      {"220", "500"},
			"EHLO x\r\n" + transaction:                                               {"220", "250", "500"},
			"EHLO x\r\n" + transaction + "\r\n":                                      {"220", "250", "500"},
			"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\nDATA\r\n": {"220", "250", "250", "500"},
			"EHLO x\rMAIL FROM:<a@out.example>\rRCPT TO:<" + bot + ">\rDATA\r\r\n":   {"220", "501"},
			"EHLO x\r\nMAIL FROM:<a@out.example>\r\r\nRCPT TO:<" + bot + ">\r\n":     {"220", "250", "501", "503"},
		} {
			if got := codes(talk(t, addr, say)); !slices.Equal(got, want) {
				t.Errorf("replies to %q: %v, want %v", say, got, want)
			}
		}
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// Half a command is never run, neither when the client goes silent nor when it
// goes away (S4).
func TestHalfCommandsAreNotRun(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		const timeout = 200 * time.Millisecond
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) {
			c.CommandTimeout, c.LineTimeout, c.MaxConnsPerIP = time.Minute, timeout, 200
		})
		begin := "EHLO client.example\r\nMAIL FROM:<a@out.example>\r\n"
		halves := []string{"RSET", "QUIT", "RCPT TO:<" + bot + ">", "NOOP", "DATA", "BDAT 0 LAST", "EHLO x", "RSET\r", "QUIT\r", "VRFY x"}
		const each = 5
		t.Run("FIN", func(t *testing.T) {
			t.Parallel()
			for _, half := range halves {
				for range each {
					if got := codes(talk(t, addr, begin+half)); !slices.Equal(got, []string{"220", "250", "250"}) {
						t.Errorf("%q and FIN: %v", half, got)
					}
				}
			}
		})
		t.Run("silence", func(t *testing.T) {
			t.Parallel()
			for _, half := range halves {
				began := time.Now()
				all := make([]*client, each)
				for i := range all {
					all[i] = dial(t, addr)
					all[i].send(begin + half)
				}
				for _, c := range all {
					for _, want := range []string{"220", "250", "250", "421 4.4.2"} {
						c.want(want)
					}
					c.wantClosed()
				}
				// One timeout: after that of a command the clients would be gone.
				if took := time.Since(began); took < timeout {
					t.Errorf("%q and silence: closed after %v", half, took)
				}
			}
		})
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// A line may not take longer by coming one byte at a time (S4).
func TestTrickledCommandTimesOut(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		synctest.Test(t, func(t *testing.T) {
			srv, _ := keeping(t, p.kind, func(c *ServerConfig) { c.LineTimeout = time.Minute })
			ours, theirs := net.Pipe()
			run(t, srv, newWire(srv, ours))
			c := &client{t, theirs, bufio.NewReader(theirs)}
			c.want("220")
			c.cmd("250-", "EHLO x")
			began := time.Now()
			every := time.NewTicker(10 * time.Second)
			cut := make(chan struct{})
			go func() {
				for {
					select {
					case <-every.C:
						_, _ = theirs.Write([]byte("N")) // until it is cut off
					case <-cut:
						return
					}
				}
			}()
			c.want("421 4.4.2")
			close(cut)
			if took := time.Since(began); took != 10*time.Second+time.Minute { // from the first byte on
				t.Errorf("cut off after %v", took)
			}
			c.wantClosed()
			_ = theirs.Close()
		})
	})
}

// Commands sent before the greeting get replies in order (RFC 5321 section 3.1
// asks clients to wait) (S6).
func TestCommandsBeforeTheGreetingAreRun(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		early := []string{
			"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\nRSET\r\nDATA\r\n",
			"NOOP\r\nEHLO x\r\n", "\r\nEHLO x\r\n", "MAIL FROM:<a@out.example>\r\nEHLO x\r\n", "QUIT\r\n",
		}
		want := []string{"220 250 250 250 250 503", "220 250 250", "220 500 250", "220 503 250", "220 221"}
		for i := range 100 {
			i %= len(early)
			if got := strings.Join(codes(talk(t, addr, early[i])), " "); got != want[i] {
				t.Errorf("%q: %s, want %s", early[i], got, want[i])
			}
		}
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// Row S9 of docs/testing.md.
func TestLongCommandLines(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)), p.kind)
		line := func(n int) string { return "NOOP " + strings.Repeat("x", n-len("NOOP \r\n")) + "\r\n" }
		for n, want := range map[int]string{512: "220 250 221", 2048: "220 250 221", 2049: "220 500", 1 << 20: "220 500"} {
			if got := strings.Join(codes(talk(t, addr, line(n)+"QUIT\r\n")), " "); got != want {
				t.Errorf("%d bytes: %s, want %s", n, got, want)
			}
		}
		if got := codes(talk(t, addr, strings.Repeat("x", 1<<20))); fmt.Sprint(got) != "[220 500]" {
			t.Errorf("a megabyte without an end: %v", got)
		}
	})
}

// S24: PROXY and XCLIENT are refused.
func TestProxyAndXCLIENTAreRefused(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		var log lockedBuffer
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.Log = textLog(&log) })
		for _, spoof := range []string{
			"PROXY TCP4 192.0.2.7 192.0.2.8 1000 25\r\n", "PROXY UNKNOWN\r\n",
			"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x08\x03\xe8\x00\x19",
			"EHLO x\r\nXCLIENT ADDR=192.0.2.7 NAME=trusted.example\r\n", "EHLO x\r\nXFORWARD ADDR=192.0.2.7\r\n",
		} {
			got := codes(talk(t, addr, spoof+"EHLO y\r\n"))
			if !slices.ContainsFunc(got, func(code string) bool { return code[0] == '5' }) {
				t.Errorf("%q: %v", spoof, got)
			}
		}
		text := talk(t, addr, "PROXY TCP4 192.0.2.7 192.0.2.8 1000 25\r\nEHLO x\r\nXCLIENT ADDR=192.0.2.7\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<"+bot+">\r\nDATA\r\n"+rawMail("Hi.")+".\r\n")
		if got := strings.Join(codes(text), " "); got != "220 500 250 500 250 250 354 250" {
			t.Errorf("replies %s", got)
		}
		only(t, s, in)
		if !strings.Contains(log.String(), "remote_ip=127.0.0.1") || strings.Contains(log.String(), "192.0.2.7") {
			t.Errorf("the address of the client is another:\n%s", log.String())
		}
	})
}
