package inbound

import (
	"io"
	"strings"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

func TestServerStartTLS(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.TLS = tlsConfig(t); c.MaxConns = 1 })
	c := hello(t, addr)
	c.cmd("250", "MAIL FROM:<a@out.example>")
	c.cmd("250", "RCPT TO:<%s>", in.Address)
	c.cmd("220", "STARTTLS")
	c.upgrade()

	c.cmd("503", "MAIL FROM:<a@out.example>") // EHLO is forgotten
	c.cmd("354", "DATA")                      // the library remembers the transaction
	c.send(rawMail("Hi.") + ".\r\n")
	c.want("503")
	if offers := c.cmd("250", "EHLO client.example"); strings.Contains(offers, "STARTTLS") {
		t.Errorf("STARTTLS is offered again: %s", offers)
	}
	c.cmd("502", "STARTTLS")
	c.cmd("502", "DATA") // and so are the recipients
	raw := sized(100_000)
	c.begin("a@out.example", in.Address)
	c.send(raw + ".\r\n")
	c.want("250")
	if m := only(t, s, in); readRaw(t, s, m) != raw {
		t.Error("the message that arrived over TLS is not the stored one")
	}
	c.cmd("221", "QUIT")
	c.wantClosed()
	hello(t, addr) // the one place is free again
}

// What comes in clear behind STARTTLS, in the same segment, is never run
// (CVE-2011-0411) (S5).
func TestNothingIsInjectedBeforeTLS(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.TLS = tlsConfig(t) })
		injected := []string{
			"EHLO injected\r\nMAIL FROM:<evil@out.example>\r\n", "MAIL FROM:<evil@out.example>\r\n", "AUTH PLAIN AGEAYg==\r\n",
			"EHLO injected\r\n", "RSET\r\nQUIT\r\n",
		}
		for i := range 100 {
			c := hello(t, addr)
			c.send("STARTTLS\r\n" + injected[i%len(injected)])
			c.want("220")
			c.upgrade()
			c.cmd("503 5.5.1 EHLO first", "MAIL FROM:<a@out.example>") // exactly one reply, and the first
			c.cmd("250", "EHLO client.example")
			c.cmd("502", "RCPT TO:<a@in.example>")
			_ = c.conn.Close()
		}
	})
}

func TestServerHandshakeThatFails(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)), func(c *ServerConfig) { c.TLS = tlsConfig(t) })
	c := hello(t, addr)
	c.cmd("220", "STARTTLS")
	c.send("EHLO in clear\r\n")
	if b, err := io.ReadAll(c.r); err == nil && strings.Contains(string(b), "250") {
		t.Errorf("the server replies to commands in clear after STARTTLS: %q", b)
	}
	hello(t, addr)
}
