package inbound

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
		{"a bare LF ends the session", "EHLO x\nMAIL FROM:<a@out.example>\nNOOP\n", "500 5.5.2", true},
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
			c.want(tt.want)
			if tt.closed {
				c.wantClosed()
				return
			}
			c.cmd("503", "DATA") // no transaction was begun
		})
	}
	if n := len(list(t, s, in)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestChunkSize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args     string
		size     int64
		last, ok bool
	}{
		{"5", 5, false, true},
		{"0 last", 0, true, true},
		{"7   LAST ", 7, true, true},
		{"4294967295", 1<<32 - 1, false, true},
		{"4294967296", 0, false, false},
		{"-1", 0, false, false},
		{"+1", 0, false, false},
		{"1 FIRST", 0, false, false},
		{"1 LAST x", 0, false, false},
		{"", 0, false, false},
	}
	for _, tt := range tests {
		size, last, ok := chunkSize(tt.args)
		if ok != tt.ok || ok && (size != tt.size || last != tt.last) {
			t.Errorf("chunkSize(%q) = %d, %t, %t", tt.args, size, last, ok)
		}
	}
}
