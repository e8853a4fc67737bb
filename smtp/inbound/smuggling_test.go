package inbound

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/postroom/postroom/store/storetest"
)

// ends are byte strings that some servers wrongly take for the end of a message
// (CVE-2023-51764, -51765, -51766).
var ends = []string{
	"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r.\n", "\n.\r",
	"\r\n.\x00.\r\n", "\r\r\n.\r\r\n", "\r\n.\r\r\n", "\r\n\x00.\r\n", "\n\r.\n\r",
}

// smuggled returns a message that contains another behind a false end.
func smuggled(end string) string {
	return rawMail("b") + "c" + end + "MAIL FROM:<evil@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\n" + rawMail("Pay me.")
}

// smugglers are the ways to send a message.
var smugglers = map[string]func(c *client, raw string){
	"DATA": func(c *client, raw string) {
		c.begin("a@out.example", bot)
		go func() { _, _ = c.conn.Write([]byte(raw + ".\r\n")) }() // the server may stop reading
	},
	"DATA in TLS": func(c *client, raw string) {
		c.cmd("220", "STARTTLS")
		c.upgrade()
		c.cmd("250", "EHLO client.example")
		c.begin("a@out.example", bot)
		conn := c.conn
		go func() { _, _ = conn.Write([]byte(raw + ".\r\n")) }()
	},
}

// Row S1 of docs/testing.md.
func TestSmugglingIsRefused(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.TLS = tlsConfig(t) })
		refused := 0
		for way, say := range smugglers {
			for _, end := range ends {
				c := hello(t, addr)
				say(c, smuggled(end))
				reply := c.want("554 5.6.0")
				c.cmd("221", "QUIT") // the next reply belongs to the next command
				c.wantClosed()
				if !strings.Contains(reply, "bare <CR> or <LF>") && !strings.Contains(reply, "NUL") {
					t.Errorf("%s, %q: %s", way, end, reply)
				}
				refused++
			}
		}
		if n := len(list(t, s, in)); n != 0 || refused != 26 {
			t.Errorf("%d refused, want 26; %d messages", refused, n)
		}
	})
}

// With normalize there is one message, and every line of it ends in CRLF. NUL
// makes no line end, and is refused as ever (S1).
func TestSmugglingIsNormalized(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.TLS = tlsConfig(t); c.Normalize = true })
		stored := 0
		for way, say := range smugglers {
			for _, end := range ends {
				c := hello(t, addr)
				say(c, smuggled(end))
				if strings.Contains(end, "\x00") {
					c.want("554 5.6.0 NUL")
					continue
				}
				c.want("250")
				c.cmd("250", "NOOP") // the next reply belongs to the next command
				c.cmd("221", "QUIT")
				stored++
				all := list(t, s, in)
				if len(all) != stored {
					t.Fatalf("%s, %q: %d messages, want %d", way, end, len(all), stored)
				}
				raw := readRaw(t, s, all[0])
				if strings.ContainsAny(strings.ReplaceAll(raw, "\r\n", ""), "\r\n") || !strings.Contains(raw, "Pay me.") {
					t.Errorf("%s, %q: stored %q", way, end, raw)
				}
			}
		}
		if stored != 22 {
			t.Errorf("%d messages, want 22", stored)
		}
	})
}

// TestNormalizedLineEnds sends line ends that are not CRLF, at once and in pieces.
func TestNormalizedLineEnds(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"code 4829=\r\r\n13":    "code 4829=\r\n13",
		"a\r\r\n\r\r\nb":        "a\r\n\r\nb",
		"a\r\rb":                "a\r\n\r\nb",
		"a\r\r\r\nb":            "a\r\n\r\nb",
		"a\n\rb\r\n\nc":         "a\r\n\r\nb\r\n\r\nc",
		"a" + "\r\r\r\r" + "b":  "a\r\n\r\n\r\n\r\nb",
		"a\r\n.\rb\r\n..\r\r\n": "a\r\n\r\nb\r\n.\r\n",
		strings.Repeat("x", readBuffer-1) + "\ry": strings.Repeat("x", readBuffer-1) + "\r\ny",
	} {
		srv, k := keeping(t, func(c *ServerConfig) { c.Normalize = true })
		say := states[4] + in + "\r\n.\r\nNOOP\r\n"
		for _, r := range []io.Reader{strings.NewReader(say), iotest.OneByteReader(strings.NewReader(say))} {
			k.kept = nil
			got := strings.Join(codes(converse(t, srv, r)), " ")
			if got != "220 250 250 250 354 250 250" || len(k.kept) != 1 || k.kept[0] != want+"\r\n" {
				t.Errorf("%q: %s, stored %q, want %q", in, got, k.kept, want)
			}
		}
	}
}
