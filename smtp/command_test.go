package smtp

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/store/storetest"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	tests := []struct {
		name, say, want string
		closed          bool
	}{
		{"a bare LF ends no command", "EHLO x\nMAIL FROM:<a@out.example>\nNOOP\n", "500 5.5.2", false},
		{"a bare CR", "NOOP\rNOOP\r\n", "501 5.5.2", false},
		{"NUL", "MAIL FROM:<a\x00@out.example>\r\n", "501 5.5.2", false},
		{"2,048 bytes", "NOOP " + strings.Repeat("x", 2048-7) + "\r\n", "250", false},
		{"2,049 bytes", "NOOP " + strings.Repeat("x", 2049-7) + "\r\n", "500 5.5.2", true},
		{"a megabyte without an end", strings.Repeat("x", 1<<20), "500 5.5.2", true},
		{"STARTTLS that is not offered", "STARTTLS\r\n", "502", false},
		{"an empty line", "\r\n", "500", false},
		{"VRFY", "VRFY bot\r\n", "252", false},
		{"EXPN", "EXPN bot\r\n", "502", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := hello(t, addr)
			go func() { _, _ = c.conn.Write([]byte(tt.say)) }() // the server may stop reading
			for range max(1, strings.Count(strings.ReplaceAll(tt.say, "\r\n", ""), "\n")) {
				c.want(tt.want)
			}
			if tt.closed {
				c.wantClosed()
				return
			}
			c.cmd("502", "DATA") // no transaction was begun
		})
	}
	if n := len(list(t, s, in)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestCommandsWithoutMailAreCounted(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.MaxRecipients = 5 })
	for _, junk := range []string{"NOOP", "RSET", "VRFY bot", "EHLO x", "HELP", "MAIL FROM:<", "DATA", "BDAT 0"} {
		t.Run(junk, func(t *testing.T) {
			t.Parallel()
			c := hello(t, addr)
			for range maxCommands - 1 { // EHLO was the first
				c.cmd("", "%s", junk)
			}
			c.cmd("421 4.7.0", "%s", junk)
			c.wantClosed()
		})
	}
	t.Run("recipients beyond the limit", func(t *testing.T) {
		t.Parallel()
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		for range 5 {
			c.cmd("250", "RCPT TO:<%s>", in.Address)
		}
		for range maxCommands {
			c.cmd("452 4.5.3", "RCPT TO:<%s>", in.Address)
		}
		c.cmd("421 4.7.0", "RCPT TO:<%s>", in.Address)
	})
	t.Run("accepted mail begins the count anew", func(t *testing.T) {
		t.Parallel()
		c := hello(t, addr)
		for range 5 {
			for range maxCommands - 5 {
				c.cmd("250", "NOOP")
			}
			c.begin("a@out.example", in.Address)
			c.send(mail("Hi.") + ".\r\n")
			c.want("250")
		}
	})
	t.Run("many small chunks are no junk", func(t *testing.T) {
		t.Parallel()
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		c.cmd("250", "RCPT TO:<%s>", in.Address)
		for _, b := range []byte(mail(strings.Repeat("x", 3*maxCommands))) {
			c.send("BDAT 1\r\n" + string(b))
			c.want("250")
		}
		c.cmd("250", "BDAT 0 LAST")
	})
}

func TestChunkSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line     string
		size     int64
		last, ok bool
	}{
		{"BDAT 5\r\n", 5, false, true},
		{"bdat 0 last\r\n", 0, true, true},
		{"BDAT  7   LAST \r\n", 7, true, true},
		{"BDAT 4294967295\r\n", 1<<32 - 1, false, true},
		{"BDAT 4294967296\r\n", 0, false, false},
		{"BDAT -1\r\n", 0, false, false},
		{"BDAT +1\r\n", 0, false, false},
		{"BDAT 1 FIRST\r\n", 0, false, false},
		{"BDAT 1 LAST x\r\n", 0, false, false},
		{"BDAT\r\n", 0, false, false},
	}
	for _, tt := range tests {
		size, last, ok := chunkSize([]byte(tt.line))
		if ok != tt.ok || ok && (size != tt.size || last != tt.last) {
			t.Errorf("chunkSize(%q) = %d, %t, %t", tt.line, size, last, ok)
		}
	}
}
