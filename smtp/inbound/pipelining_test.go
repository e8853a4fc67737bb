package inbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// botInbox makes the inbox bot@in.example.
func botInbox(t testing.TB, s *store.Store) store.Inbox {
	return storetest.Inbox(t, s, func(in *store.Inbox) { in.Address = bot })
}

// A thousand commands in groups of a hundred, each group in one write, get
// replies in order; messages in between are stored (RFC 2920) (S7).
func TestPipelinedGroupsGetRepliesInOrder(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		c := hello(t, addr)
		const groups, rcpts = 10, 97
		for g := range groups {
			group := fmt.Sprintf("MAIL FROM:<a@out.example>\r\n%sDATA\r\n", strings.Repeat("RCPT TO:<"+bot+">\r\n", rcpts))
			c.send("NOOP\r\n" + group)
			want := append([]string{"250 2.0.0", "250 2.1.0"}, slices.Repeat([]string{"250 2.1.5"}, rcpts)...)
			for _, w := range append(want, "354") {
				c.want(w)
			}
			c.send(fmt.Sprintf("Subject: %d\r\n\r\n.\r\n", g))
			c.want("250 2.0.0 Message stored")
		}
		if n := len(list(t, s, in)); n != groups {
			t.Errorf("%d messages, want %d", n, groups)
		}
	})
}

// Row S7 of docs/testing.md.
func TestOneRecipientOfFiveIsRefused(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		say := "EHLO x\r\n"
		var want []string
		for i := range 10 {
			say += "MAIL FROM:<a@out.example>\r\n"
			want = append(want, "250")
			for r := range 5 {
				rcpt, code := fmt.Sprintf("bot+%d@in.example", r), "250"
				if r == i%5 {
					rcpt, code = p.no, p.noCode
				}
				say += "RCPT TO:<" + rcpt + ">\r\n"
				want = append(want, code)
			}
			raw := rawMail(fmt.Sprint(i))
			say += fmt.Sprintf("BDAT %d LAST\r\n%s", len(raw), raw)
			want = append(want, "250")
		}
		if got := codes(talk(t, addr, say)); !slices.Equal(got[2:], want) {
			t.Errorf("replies %v, want %v", got[2:], want)
		}
		if n := len(list(t, s, in)); n != 10 {
			t.Errorf("%d messages, want 10", n)
		}
	})
}

// Without recipients DATA is refused, and the message of a client that did not
// wait is not read as commands (S7).
func TestBodyIsNeverRunAsCommands(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		body := "MAIL FROM:<evil@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\n" + rawMail("Pay me.") + ".\r\n"
		for envelope, want := range map[string]string{
			"MAIL FROM:<a@out.example>\r\nRCPT TO:<" + p.no + ">\r\nRCPT TO:<" + p.no + ">\r\n": "220 250 250 " + p.noCode + " " + p.noCode + " 503",
			"MAIL FROM:<a@out.example>\r\n": "220 250 250 503",
			"RSET\r\n":                      "220 250 250 503",
		} {
			if got := strings.Join(codes(talk(t, addr, "EHLO x\r\n"+envelope+"DATA\r\n"+body)), " "); got != want {
				t.Errorf("%q and a message: %s, want %s", envelope, got, want)
			}
		}
		// One that waits may go on.
		c := hello(t, addr)
		c.send("MAIL FROM:<a@out.example>\r\nRCPT TO:<" + p.no + ">\r\nDATA\r\n")
		for _, want := range []string{"250", p.noCode, "503"} {
			c.want(want)
		}
		c.cmd("250", "RCPT TO:<%s>", bot)
		c.cmd("354", "DATA")
		c.send(rawMail("Hi.") + ".\r\n")
		c.want("250")
		if n := len(list(t, s, in)); n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
	})
}

// S8: each of these orders is wrong. What is wrong is 503, and no sender and no
// recipient of before is there when a transaction starts again.
func TestWrongCommandOrdersAreRefused(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		const (
			ehlo, from, from2 = "EHLO x\r\n", "MAIL FROM:<a@out.example>\r\n", "MAIL FROM:<b@out.example>\r\n"
			rcpt, data, rset  = "RCPT TO:<" + bot + ">\r\n", "DATA\r\n", "RSET\r\n"
			chunk, last       = "BDAT 6\r\nA: b\r\n", "BDAT 0 LAST\r\n"
			hi                = data + "A: b\r\n\r\n.\r\n"
		)
		tests := []struct{ say, want string }{ // each begins with what comes after the greeting
			{from, "503"},
			{rcpt, "503"},
			{data, "503"},
			{chunk, "503"},
			{last, "503"},
			{"HELO\r\n" + from, "501 503"},
			{"EHLO\r\n" + from, "501 503"},
			{ehlo + rcpt, "250 503"},
			{ehlo + data, "250 503"},
			{ehlo + chunk, "250 503"},
			{ehlo + last, "250 503"},
			{ehlo + from + from2, "250 250 503"},
			{ehlo + from + from, "250 250 503"},
			{ehlo + from + rcpt + from2 + rset + data, "250 250 250 503 250 503"},
			{ehlo + from + data, "250 250 503"},
			{ehlo + from + chunk, "250 250 503"},
			{ehlo + from + last, "250 250 503"},
			{ehlo + from + rcpt + rset + data, "250 250 250 250 503"},
			{ehlo + from + rcpt + rset + rcpt, "250 250 250 250 503"},
			{ehlo + from + rcpt + rset + from + data, "250 250 250 250 250 503"},
			{ehlo + from + rcpt + ehlo + data, "250 250 250 250 503"},
			{ehlo + from + rcpt + "HELO x\r\n" + rcpt, "250 250 250 250 503"},
			{ehlo + from + rcpt + ehlo + from + last, "250 250 250 250 250 503"},
			{ehlo + from + rcpt + chunk + data, "250 250 250 250 503"},
			{ehlo + from + rcpt + chunk + rcpt, "250 250 250 250 503"},
			{ehlo + from + rcpt + chunk + from, "250 250 250 250 503"},
			{ehlo + from + rcpt + chunk + rset + last, "250 250 250 250 250 503"},
			{ehlo + from + rcpt + chunk + ehlo + last, "250 250 250 250 250 503"},
			{ehlo + from + rcpt + hi + data, "250 250 250 354 250 503"},
			{ehlo + from + rcpt + hi + from + data, "250 250 250 354 250 250 503"},
			{ehlo + from + rcpt + hi + rcpt, "250 250 250 354 250 503"},
			{ehlo + from + rcpt + chunk + last + last, "250 250 250 250 250 503"},
			{ehlo + from + "RCPT TO:<" + p.no + ">\r\n" + data, "250 250 " + p.noCode + " 503"},
		}
		stored := 0
		for _, tt := range tests {
			if got := strings.Join(codes(talk(t, addr, tt.say)[len("220 mx.in.example ESMTP\r\n"):]), " "); got != tt.want {
				t.Errorf("%q: %s, want %s", tt.say, got, tt.want)
			}
			if strings.Contains(tt.say, hi) || strings.Contains(tt.say, chunk+last+last) {
				stored++
			}
		}
		if n := len(list(t, s, in)); n != stored {
			t.Errorf("%d messages, want %d", n, stored)
		}
	})
}

// A second MAIL begins nothing, and takes nothing away (S8).
func TestSecondMailChangesNothing(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example>")
		c.cmd("503", "MAIL FROM:<>")
		c.cmd("250", "RCPT TO:<%s>", bot)
		c.cmd("503", "MAIL FROM:<>")
		c.cmd("354", "DATA")
		c.send(rawMail("Hi.") + ".\r\n")
		c.want("250")
		if m := only(t, s, in); m.Automated {
			t.Error("a second MAIL FROM with the null reverse-path was accepted")
		}
	})
}
