package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// S17: a client learns nothing about inboxes that it could not learn by
// sending mail, and nothing at all about those that were deleted.
func TestNoHintsAboutInboxes(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	account := storetest.Account(t, s)
	botInbox(t, s)
	gone := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID, in.Address = account.Seq, "gone@in.example" })
	if _, err := s.DeleteInbox(t.Context(), account.Seq, gone.ID); err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, newReceiver(t, s))
	c := hello(t, addr)
	for _, verb := range []string{"VRFY", "EXPN", "HELP"} {
		var replies []string
		for _, who := range []string{"bot", "gone", "never", bot, "gone@in.example", "never@in.example", "<" + bot + ">", "postmaster"} {
			replies = append(replies, c.cmd(map[string]string{"VRFY": "252", "EXPN": "502", "HELP": "502"}[verb], "%s %s", verb, who))
		}
		for _, a := range replies {
			if a != replies[0] || strings.Contains(a, "bot") {
				t.Errorf("%s distinguishes %q and %q", verb, a, replies[0])
			}
		}
	}
	c.cmd("250", "MAIL FROM:<a@out.example>")
	deleted := c.cmd("550 5.1.1", "RCPT TO:<gone@in.example>")
	if never := c.cmd("550 5.1.1", "RCPT TO:<never@in.example>"); never != deleted {
		t.Errorf("never made: %q, deleted: %q", never, deleted)
	}
	c.cmd("250", "RCPT TO:<%s>", bot)
}

// S18: mail for others is refused, however it is addressed, and nothing is sent
// on: in each case the message is stored in the inbox or nowhere.
func TestNoRelaying(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	forms := []struct {
		rcpt, want string
	}{
		{"u@out.example", "550 5.7.1"},
		{"bot%out.example@in.example", "550 5.7.1"},
		{"u%out.example@in.example", "550 5.7.1"},
		{`"u@out.example"@in.example`, "550 5.7.1"},
		{`"u%out.example"@in.example`, "550 5.7.1"},
		{"@in.example:u@out.example", "550 5.7.1"},
		{"@in.example,@in.example:u@out.example", "550 5.7.1"},
		{"out.example!u@in.example", "550 5.7.1"},
		{`"out.example!u"@in.example`, "550 5.7.1"},
		{"in.example!u@out.example", "550 5.7.1"},
		{"u@[127.0.0.1]", "550 5.7.1"},
		{"bot@[127.0.0.1]", "550 5.7.1"},
		{"bot@[IPv6:::1]", "550 5.7.1"},
		{"bot@in.example.evil.example", "550 5.7.1"},
		{"bot@evilin.example", "550 5.7.1"},
		{"bot@sub.in.example", "550 5.7.1"},
		{"bot@in.example.", "550 5.7.1"},
		{"bot@.in.example", "550 5.7.1"},
		{"bot@", "501"},
		{"bot", "501"},
		{"", "501"},
		{"@in.example:", "501"},
		{"bot@in.example@out.example", "550"},
		{"bot@out.example@in.example", "550"},
		{"bot@in.example,u@out.example", "550"},
		{"bot@ın.example", "550 5.7.1"},
		{"bot@xn--n-iga.example", "550 5.7.1"},
		{"bot@in.exampl\u0435", "550 5.7.1"},
		{"bot@in.example> <u@out.example", "500"},
		{`"bot"@in.example`, "250"},
		{"@out.example:bot@in.example", "250"},
		{"BOT+u=out.example@IN.example", "250"},
	}
	if len(forms) < 24 {
		t.Errorf("%d forms", len(forms))
	}
	taken := 0
	for _, f := range forms {
		c := hello(t, addr)
		c.cmd("250", "MAIL FROM:<a@out.example> SMTPUTF8")
		c.cmd(f.want, "RCPT TO:<%s>", f.rcpt)
		if f.want != "250" {
			c.cmd("502", "DATA")
			continue
		}
		c.cmd("354", "DATA")
		c.send(rawMail("Hi.") + ".\r\n")
		c.want("250")
		taken++
	}
	if n := len(list(t, s, in)); n != taken {
		t.Errorf("%d messages, want %d", n, taken)
	}
	nothingLeaves(t, s)
}

// nothingLeaves checks that the queue is empty.
func nothingLeaves(t *testing.T, s *store.Store) {
	t.Helper()
	jobs, err := s.ClaimRecipients(t.Context(), 100, time.Minute, nil)
	if err != nil || len(jobs) != 0 {
		t.Errorf("%d recipients to deliver to, %v", len(jobs), err)
	}
}

// S19: mail with a forged sender that cannot be taken is refused while its
// client is there, and no one is ever sent a notice about it.
func TestNoBackscatter(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := botInbox(t, s)
	if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
		t.Fatal(err)
	}
	live := storetest.Inbox(t, s)
	clock := storetest.NewClock(time.Now())
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.MaxSize, c.Now = 5000, clock.Now })
	to := "RCPT TO:<" + live.Address + ">\r\n"
	ways := []struct{ say, want string }{
		{"RCPT TO:<" + bot + ">\r\n", "550"},
		{to + "DATA\r\n" + sized(6000) + ".\r\n", "250 354 552"},
		{to + "DATA\r\n" + strings.Repeat("Received: x\r\n", 51) + rawMail("Hi.") + ".\r\n", "250 354 554"},
		{to + "DATA\r\n" + rawMail("bad\x00") + ".\r\n", "250 354 554"},
		{to + "DATA\r\n" + rawMail("bad\nend") + ".\r\n", "250 354 554"},
	}
	for i := range 1000 {
		way := ways[i%len(ways)]
		if i%100 == 0 {
			clock.Add(guessTime) // so that this is not about who guesses
		}
		say := fmt.Sprintf("EHLO x\r\nMAIL FROM:<victim%d@out.example>\r\n%s", i, way.say)
		if got := strings.Join(codes(talk(t, addr, say))[3:], " "); got != way.want {
			t.Fatalf("%d: %s, want %s", i, got, way.want)
		}
	}
	if n := len(list(t, s, live)); n != 0 {
		t.Errorf("%d messages", n)
	}
	nothingLeaves(t, s)
}
