package inbound

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// step is a client's input and the start of the expected reply.
type step struct{ say, want string }

// script is a session after EHLO, the number of messages that it leaves in
// bot@in.example, and whether the server closes the connection.
type script struct {
	name   string
	steps  []step
	stored int
	closed bool
}

// mailTo begins a transaction for recipients that are taken.
func mailTo(rcpts ...string) []step {
	steps := []step{{"MAIL FROM:<a@out.example>", "250"}}
	for _, rcpt := range rcpts {
		steps = append(steps, step{"RCPT TO:<" + rcpt + ">", "250"})
	}
	return steps
}

// data returns the steps of DATA with a message and the expected reply.
func data(raw, want string) []step { return []step{{"DATA", "354"}, {raw + ".", want}} }

// join makes one script of several, and of single steps as pairs of strings.
func join(parts ...any) (all []step) {
	for i := 0; i < len(parts); i++ {
		switch p := parts[i].(type) {
		case []step:
			all = append(all, p...)
		case string:
			i++
			all = append(all, step{p, parts[i].(string)}) //nolint:gosec // a pair was begun
		}
	}
	return all
}

const bot = "bot@in.example"

// play runs the scripts against a server with small limits.
func play(t *testing.T, scripts []script) {
	t.Helper()
	s := storetest.OpenSQLite(t)
	account := storetest.Account(t, s)
	inbox := func(address string) store.Inbox {
		return storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID, in.Address = account.Seq, address })
	}
	in := inbox(bot)
	if _, err := s.DeleteInbox(t.Context(), account.Seq, inbox("gone@in.example").ID); err != nil {
		t.Fatal(err)
	}
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.MaxRecipients = 3; c.MaxSize = 10_000 })
	for _, sc := range scripts {
		before := len(list(t, s, in))
		c := hello(t, addr)
		t.Logf("%s", sc.name)
		for _, st := range sc.steps {
			if !strings.HasPrefix(st.say, "BDAT") || !strings.Contains(st.say, "\n") {
				st.say += "\r\n"
			}
			go func() { _, _ = c.conn.Write([]byte(st.say)) }() // the server may stop reading
			c.want(st.want)
		}
		if sc.closed {
			c.wantClosed()
		} else {
			c.cmd("221", "QUIT")
		}
		if stored := len(list(t, s, in)) - before; stored != sc.stored {
			t.Errorf("stored %d, want %d", stored, sc.stored)
		}
	}
}

func TestSessionTransactions(t *testing.T) {
	t.Parallel()
	const noInbox = "550 5.1.1 No such inbox here"
	hi := data(rawMail("Hi."), "250")
	play(t, []script{
		{"one recipient of two is unknown", join(mailTo(), "RCPT TO:<missing@in.example>", noInbox, "RCPT TO:<Bot@IN.example>", "250", hi), 1, false},
		{
			"unknown and deleted inboxes get the same reply",
			join(mailTo(), "RCPT TO:<missing@in.example>", noInbox, "RCPT TO:<gone@in.example>", noInbox), 0, false,
		},
		{"no relaying", join(mailTo(), "RCPT TO:<x@out.example>", "550 5.7.1 Relaying denied", "DATA", "503"), 0, false},
		{"no relaying by a source route", join(mailTo(), "RCPT TO:<@in.example:x@out.example>", "550 5.7.1"), 0, false},
		{"no relaying by quotes", join(mailTo(), `RCPT TO:<"x@out.example"@in.example>`, "5"), 0, false},
		{
			"recipients over the limit",
			join(mailTo("bot+1@in.example", "bot+2@in.example", "bot+3@in.example"), "RCPT TO:<bot@in.example>", "452 4.5.3", hi), 1, false,
		},
		{"MAIL in a transaction", join(mailTo(bot), "MAIL FROM:<b@out.example>", "503", hi, mailTo()), 1, false},
		{"RSET forgets the recipients", join(mailTo(bot), "RSET", "250", "DATA", "503", mailTo(), "DATA", "503"), 0, false},
		{"EHLO forgets the recipients", join(mailTo(bot), "EHLO again", "250", "DATA", "503"), 0, false},
		{"the next message needs its own recipients", join(mailTo(bot), hi, mailTo(), "DATA", "503"), 1, false},
		{"an address with SMTPUTF8", join("MAIL FROM:<änn@out.example> SMTPUTF8", "250", "RCPT TO:<bot@in.example>", "250", hi), 1, false},
		{"a sender that is too long", join("MAIL FROM:<"+strings.Repeat("x", 250)+"@out.example>", "501 5.1.7"), 0, false},
		{"a bare LF in the data", join(mailTo(bot), data("a\n.\nMAIL FROM:<b@out.example>\r\n", "554 5.6.0")), 0, true},
		{"a loop", join(mailTo(bot), data(strings.Repeat("Received: x\r\n", 51)+rawMail("Hi."), "554 5.4.6"), mailTo()), 0, false},
	})
}

func TestSessionSizeLimit(t *testing.T) {
	t.Parallel()
	play(t, []script{
		{"exactly the limit", join("MAIL FROM:<a@out.example> SIZE=10000", "250", "RCPT TO:<bot@in.example>", "250", data(sized(10_000), "250")), 1, false},
		{"a byte more", join(mailTo(bot), data(sized(10_001), "552 5.3.4"), mailTo()), 0, false},
		{"a message far over the limit", join(mailTo(bot), data(sized(700_000), "552 5.3.4")), 0, true},
		{"a SIZE over it", join("MAIL FROM:<a@out.example> SIZE=10001", "552 5.3.4", mailTo()), 0, false},
		{"a SIZE that is not a number", join("MAIL FROM:<a@out.example> SIZE=-1", "501"), 0, false},
		{"chunks over it", join(mailTo(bot), "BDAT 6\r\nA: b\r\n", "250", "BDAT 9995 LAST\r\n"+strings.Repeat("x", 9995), "552 5.3.4", "NOOP", "250", "BDAT 0", "503"), 0, false},
		{"a chunk over it", join(mailTo(bot), "BDAT 4000000000", "552 5.3.4"), 0, true},
	})
}

func TestSessionChunks(t *testing.T) {
	t.Parallel()
	play(t, []script{
		{
			"several",
			join(mailTo(bot), "BDAT 6\r\nA: b\r\n", "250", "BDAT 0\r\n", "250", "BDAT 9 LAST\r\n\r\n.\r\nHi\r\n", "250", "NOOP", "250"), 1, false,
		},
		{"without a size", join("BDAT x", "501"), 0, true},
		{"without recipients are read over", join("BDAT 6\r\nQUIT\r\n", "503", "NOOP", "250"), 0, false},
		{"with a bare LF", join(mailTo(bot), "BDAT 2 LAST\r\na\n", "554 5.6.0"), 0, true},
		{"with RSET between them", join(mailTo(bot), "BDAT 3\r\na\r\n", "250", "RSET", "250", "BDAT 0 LAST", "503", mailTo()), 0, false},
		{"and then DATA", join(mailTo(bot), "BDAT 3\r\na\r\n", "250", "DATA", "503"), 0, false},
	})
}

// sized returns a message of n bytes.
func sized(n int) string {
	raw := rawMail()
	lines := strings.Repeat(strings.Repeat("x", 48)+"\r\n", n/50+1)
	return raw + lines[len(lines)-(n-len(raw)):]
}
