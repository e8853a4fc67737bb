package inbound

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const bot = "bot@in.example"

// botInbox makes the inbox bot@in.example.
func botInbox(t testing.TB, s *store.Store) store.Inbox {
	return storetest.Inbox(t, s, func(in *store.Inbox) { in.Address = bot })
}

// sized returns a message of n bytes.
func sized(n int) string {
	raw := rawMail()
	lines := strings.Repeat(strings.Repeat("x", 48)+"\r\n", n/50+1)
	return raw + lines[len(lines)-(n-len(raw)):]
}

// onPortsAndTLS runs a test on both kinds of ports, in plain text, after STARTTLS and with
// TLS from the start. open connects and reads the greeting, without EHLO after it.
func onPortsAndTLS(t *testing.T, test func(t *testing.T, p port, secure func(*ServerConfig), open func(t testing.TB, addr string) *client)) {
	t.Helper()
	cert := tlsConfig(t)
	for name, how := range map[string]struct {
		secure func(*ServerConfig)
		open   func(t testing.TB, addr string) *client
	}{
		"plain": {func(*ServerConfig) {}, func(t testing.TB, addr string) *client {
			c := dial(t, addr)
			c.want("220")
			return c
		}},
		"STARTTLS": {func(c *ServerConfig) { c.TLS = cert }, func(t testing.TB, addr string) *client {
			c := hello(t, addr)
			c.cmd("220", "STARTTLS")
			c.upgrade()
			return c
		}},
		"TLS": {func(c *ServerConfig) { c.TLS, c.ImplicitTLS = cert, true }, func(t testing.TB, addr string) *client {
			c := dial(t, addr)
			c.upgrade()
			c.want("220")
			return c
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onPorts(t, func(t *testing.T, p port) { test(t, p, how.secure, how.open) })
		})
	}
}

// rest sends everything at once, and returns the replies until the server closes the
// connection.
func (c *client) rest(say string) string {
	c.t.Helper()
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = c.conn.Write([]byte(say))         // the server may stop reading
		if !strings.HasSuffix(say, "QUIT\r\n") { // else the reply to QUIT could be lost
			_ = c.conn.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	b, err := io.ReadAll(c.r)
	_ = c.conn.Close()
	<-said
	if _, cut := errors.AsType[*net.OpError](err); err != nil && !cut {
		c.t.Fatalf("%v after %q", err, b)
	}
	return string(b)
}

// TestDialogues sends whole sessions at once, on each port, in plain text and in TLS:
// each command gets one reply, in order, and exactly the complete messages are stored.
// Rows S3, S4, S6 to S12, S17, S18 and S24 of docs/testing.md.
func TestDialogues(t *testing.T) {
	t.Parallel()
	const (
		ehlo, from, from2 = "EHLO x\r\n", "MAIL FROM:<a@out.example>\r\n", "MAIL FROM:<b@out.example>\r\n"
		rcpt, data, rset  = "RCPT TO:<" + bot + ">\r\n", "DATA\r\n", "RSET\r\n"
		to                = ehlo + from + rcpt
		evil              = "MAIL FROM:<evil@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\nPay me.\r\n.\r\n"
		limit             = 10_000
	)
	hi := data + rawMail("..", "Hi.") + ".\r\n"
	body := data + evil
	onPortsAndTLS(t, func(t *testing.T, p port, secure func(*ServerConfig), open func(testing.TB, string) *client) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		if _, err := s.DeleteInbox(t.Context(), in.AccountID, storetest.Inbox(t, s, func(gone *store.Inbox) {
			gone.AccountID, gone.Address = in.AccountID, "gone@in.example"
		}).ID); err != nil {
			t.Fatal(err)
		}
		_, addr := serve(t, newReceiver(t, s), p.kind, secure, func(c *ServerConfig) { c.MaxSize, c.MaxRecipients = limit, 3 })
		no, refused := "RCPT TO:<"+p.no+">\r\n", p.noCode
		receiving := func(code string) string {
			if p.submits {
				return "250"
			}
			return code
		}
		tests := []struct {
			name, say, want string // the replies after the greeting; a session that goes on ends with QUIT
			stored          int
		}{
			{"a message", to + hi, "250 250 250 354 250", 1},
			{"two messages", to + hi + from + rcpt + hi, "250 250 250 354 250 250 250 354 250", 2},
			{"one recipient of two is refused", ehlo + from + no + rcpt + hi, "250 250 " + refused + " 250 354 250", 1},
			{"the same recipient three times", to + rcpt + rcpt + hi, "250 250 250 250 250 354 250", 1},
			{"recipients over the limit", to + rcpt + rcpt + rcpt + hi, "250 250 250 250 250 452 354 250", 1},
			{"commands at once, before the greeting or after it", "NOOP\r\n" + ehlo + rset + "VRFY x\r\nHELP\r\nEXPN x\r\n", "250 250 250 252 502 502", 0},
			{"HELO", "HELO x\r\n" + from + rcpt + hi, "250 250 250 354 250", 1},

			// Orders that are wrong.
			{"MAIL first", from, "50?", 0},
			{"RCPT first", rcpt, "502", 0},
			{"DATA first", data, "502 -", 0},
			{"EHLO without a name", "EHLO\r\n" + from, "501 50?", 0},
			{"EHLO with a long name", "EHLO " + strings.Repeat("x", 256) + "\r\n" + from, "501 50?", 0},
			{"RCPT without MAIL", ehlo + rcpt, "250 502", 0},
			{"DATA without MAIL", ehlo + data, "250 502 -", 0},
			{"DATA without RCPT", ehlo + from + data, "250 250 502 -", 0},
			{"MAIL twice", ehlo + from + from2, "250 250 503", 0},
			{"MAIL after RCPT changes nothing", to + "MAIL FROM:<>\r\n" + hi, "250 250 250 503 354 250", 1},
			{"RSET forgets the recipients", to + rset + data, "250 250 250 250 502 -", 0},
			{"RSET forgets the sender", to + rset + rcpt, "250 250 250 250 502", 0},
			{"RSET, and MAIL again", to + rset + from + data, "250 250 250 250 250 502 -", 0},
			{"EHLO forgets the recipients", to + ehlo + data, "250 250 250 250 502 -", 0},
			{"a message forgets its recipients", to + hi + from + data, "250 250 250 354 250 250 502 -", 1},
			{"a refused MAIL in between", to + from2 + rset + data, "250 250 250 503 250 502 -", 0},

			// What is in a message is not a command, even of a client that does not wait.
			{"a body after DATA without recipients", ehlo + from + no + body, "250 250 " + refused + " 502 -", 0},
			{"a body after DATA without MAIL", ehlo + body, "250 502 -", 0},
			{"a body after DATA with an argument", to + "DATA now\r\n" + evil, "250 250 250 501 -", 0},
			{"commands in a message", to + data + strings.TrimSuffix(evil, "\r\n.\r\n") + "\r\nQUIT\r\n.\r\n", "250 250 250 354 250", 1},

			// CHUNKING is not offered.
			{"a chunk", to + "BDAT 6 LAST\r\nA: b\r\n" + "NOOP\r\n", "250 250 250 502 250", 0},
			{"a chunk that is not the last", to + "BDAT 6\r\nA: b\r\n" + rset + from + rcpt + hi, "250 250 250 502 250 250 250 354 250", 1},
			{"a chunk without a recipient", ehlo + from + "BDAT 6 LAST\r\nRSET\r\n" + "NOOP\r\n", "250 250 502 250", 0},
			{"commands in a chunk", to + fmt.Sprintf("BDAT %d LAST\r\n%s", len(evil), evil) + "NOOP\r\n", "250 250 250 502 250", 0},
			{"no size of a chunk", to + "BDAT x\r\n", "250 250 250 502 -", 0},
			{"a huge chunk", to + "BDAT 4000000000 LAST\r\n", "250 250 250 502 -", 0},
			{"a chunk that is cut short", to + "BDAT 100 LAST\r\nA: b\r\n", "250 250 250 -", 0},

			// Lines.
			{"a command that ends with LF", "EHLO x\nMAIL FROM:<a@out.example>\n", "500 -", 0},
			{"a later command that ends with LF", to[:len(to)-2] + "\n" + hi, "250 250 500 -", 0},
			{"CR in a command", "EHLO x\rMAIL FROM:<a@out.example>\r\n" + from, "501 50?", 0},
			{"a command of 2,048 bytes", "NOOP " + strings.Repeat("x", 2041) + "\r\n", "250", 0},
			{"a command of 2,049 bytes", "NOOP " + strings.Repeat("x", 2042) + "\r\n", "500 -", 0},
			{"a megabyte without an end", strings.Repeat("x", 1<<20), "500 -", 0},
			{"half a command", ehlo + from + "RCPT TO:<" + bot + ">", "250 250 -", 0},
			{"half a DATA", to + "DATA", "250 250 250 -", 0},
			{"NUL in a command", ehlo + "NO\x00OP\r\n", "250 501", 0},
			{"NUL in an address", ehlo + from + "RCPT TO:<bot\x00@in.example>\r\n", "250 250 501", 0},
			{"NUL in a message", to + data + rawMail("a\x00b") + ".\r\nNOOP\r\n", "250 250 250 354 554 250", 0},
			{"CR before the end of a message", to + data + "a\r\r\n.\r\nNOOP\r\n", "250 250 250 354 554 250", 0},
			{"CR before the end of a long line", to + data + strings.Repeat("x", readBuffer-1) + "\r\r\n.\r\nNOOP\r\n", "250 250 250 354 55? 250", 0},
			{"CR before the end of a longer line", to + data + strings.Repeat("x", readBuffer-2) + "\r\r\n.\r\nNOOP\r\n", "250 250 250 354 55? 250", 0},
			{"LF in a message", to + data + "a\nb\r\n.\r\nNOOP\r\n", "250 250 250 354 554 250", 0},
			{"a message that is cut short", to + data + rawMail("Hi."), "250 250 250 354 421 -", 0},
			{"a message without its last CRLF", to + data + rawMail("Hi.") + ".\r", "250 250 250 354 421 -", 0},

			// Addresses and parameters.
			{"SMTPUTF8", ehlo + "MAIL FROM:<änn@bücher.example> SMTPUTF8\r\n" + rcpt + hi, "250 250 250 354 250", 1},
			{"a sender outside ASCII without SMTPUTF8", ehlo + "MAIL FROM:<änn@out.example>\r\n", "250 553", 0},
			{"a recipient outside ASCII without SMTPUTF8", ehlo + from + "RCPT TO:<bót@in.example>\r\n", "250 250 553", 0},
			{"invalid UTF-8", ehlo + "MAIL FROM:<\xe4nn@out.example> SMTPUTF8\r\n", "250 501", 0},
			{"a raw 8-bit header", to + data + "Subject: Grüße\r\n\r\nHallo.\r\n.\r\n", "250 250 250 354 250", 1},
			{"BODY=8BITMIME", ehlo + "MAIL FROM:<a@out.example> BODY=8BITMIME\r\n", "250 250", 0},
			{"BODY=BINARYMIME", ehlo + "MAIL FROM:<a@out.example> BODY=BINARYMIME\r\n", "250 504", 0},
			{"SIZE at the limit", ehlo + "MAIL FROM:<a@out.example> SIZE=10000\r\n", "250 250", 0},
			{"SIZE over the limit", ehlo + "MAIL FROM:<a@out.example> SIZE=10001\r\n", "250 552", 0},
			{"SIZE that is no number", ehlo + "MAIL FROM:<a@out.example> SIZE=-1\r\n", "250 501", 0},
			{"an unknown parameter", ehlo + "MAIL FROM:<a@out.example> X=1\r\n", "250 500", 0},
			{"DSN", ehlo + from + "RCPT TO:<" + bot + "> NOTIFY=NEVER\r\n", "250 250 504", 0},
			{"the null reverse-path", ehlo + "MAIL FROM:<>\r\n" + rcpt + hi, "250 250 250 354 250", 1},
			{"a sender that is too long", ehlo + "MAIL FROM:<" + strings.Repeat("x", 250) + "@out.example>\r\n", "250 501", 0},
			{"an unknown recipient", ehlo + from + "RCPT TO:<missing@in.example>\r\n", "250 250 " + receiving("550"), 0},
			{"a deleted recipient", ehlo + from + "RCPT TO:<gone@in.example>\r\n", "250 250 " + receiving("550"), 0},
			{"a recipient elsewhere", ehlo + from + "RCPT TO:<x@out.example>\r\n", "250 250 " + receiving("550"), 0},
			{"a source route", ehlo + from + "RCPT TO:<@in.example:x@out.example>\r\n", "250 250 " + receiving("550"), 0},
			{"a quoted recipient elsewhere", ehlo + from + "RCPT TO:<\"x@out.example\"@in.example>\r\n", "250 250 " + receiving("550"), 0},

			// Sizes.
			{"a message of exactly the limit", to + data + sized(limit) + ".\r\n", "250 250 250 354 250", 1},
			{"one byte more", to + data + sized(limit+1) + ".\r\n" + from, "250 250 250 354 552 250", 0},
			{"far more", to + data + sized(limit+1<<20) + ".\r\n" + from, "250 250 250 354 552 -", 0},
			{"a line of 64 KB and more", to + data + strings.Repeat("x", limit-2) + "\r\n.\r\n", "250 250 250 354 250", 1},

			// What is not SMTP, or not for everyone.
			{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\nAccept: y\r\nUser-Agent: z\r\n\r\n", "501 501 501 501 500 -", 0},
			{"PROXY", "PROXY TCP4 192.0.2.7 192.0.2.8 1000 25\r\n" + to + hi, "501 250 250 250 354 250", 1},
			{"XCLIENT", ehlo + "XCLIENT ADDR=192.0.2.7\r\n", "250 501", 0},
			{"a loop", to + data + strings.Repeat("Received: x\r\n", 51) + rawMail("Hi.") + ".\r\n", "250 250 250 354 554", 0},
		}
		stored := 0
		for _, tt := range tests {
			say, want := tt.say+"QUIT\r\n", tt.want+" 221"
			if cut, closed := strings.CutSuffix(tt.want, " -"); closed {
				say, want = tt.say, cut
			}
			got := strings.Join(codes(open(t, addr).rest(say)), " ")
			if same, err := path.Match(want, got); err != nil || !same {
				t.Errorf("%s: %s, want %s", tt.name, got, want)
			}
			all := list(t, s, in)
			if len(all)-stored != tt.stored {
				t.Errorf("%s: %d messages, want %d", tt.name, len(all)-stored, tt.stored)
			}
			stored = len(all)
		}
		for _, m := range list(t, s, in) {
			if raw := readRaw(t, s, m); raw == "Pay me.\r\n" || strings.Contains(raw, "Hi.") && raw != rawMail(".", "Hi.") && !strings.HasPrefix(raw, "Received") {
				t.Errorf("stored %q", raw)
			}
		}
	})
}

// TestOffers checks the reply to EHLO. Row S11 of docs/testing.md.
func TestOffers(t *testing.T) {
	t.Parallel()
	onPortsAndTLS(t, func(t *testing.T, p port, secure func(*ServerConfig), open func(testing.TB, string) *client) {
		_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)), p.kind, secure)
		got := open(t, addr).cmd("250", "EHLO client.example")
		for offer, want := range map[string]bool{
			"PIPELINING": true, "8BITMIME": true, "SMTPUTF8": true, "ENHANCEDSTATUSCODES": true, "SIZE 26214400": true, "LIMITS RCPTMAX=100": true,
			"CHUNKING": false, "STARTTLS": false, "BINARYMIME": false, "DSN": false, "AUTH PLAIN LOGIN": p.submits,
		} {
			if strings.Contains(got, offer) != want {
				t.Errorf("offers %s: %t, want %t:\n%s", offer, !want, want, got)
			}
		}
	})
	_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)), func(c *ServerConfig) { c.TLS = tlsConfig(t) })
	c := dial(t, addr)
	c.want("220 mx.in.example ")
	if got := c.cmd("250", "EHLO x"); !strings.Contains(got, "\r\n250-STARTTLS\r\n") {
		t.Errorf("STARTTLS is not offered:\n%s", got)
	}
}

// TestErrorsAndCommandsAreLimited counts what a client does until a message of its is
// accepted. Rows S13 and S16 of docs/testing.md.
func TestErrorsAndCommandsAreLimited(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		srv, k := keeping(t, p.kind)
		const begin = "EHLO x\r\nMAIL FROM:<a@out.example>\r\n"
		for name, tt := range map[string]struct {
			say  string
			most int
		}{
			"NOOP":               {"NOOP\r\n", maxCommands},
			"EHLO":               {"EHLO x\r\n", maxCommands},
			"recipients":         {"RCPT TO:<" + bot + ">\r\n", maxCommands},
			"unknown commands":   {"FOO!\r\n", 5}, // the library's limit
			"refused recipients": {"RCPT TO:<" + p.no + ">\r\n", maxErrors},
			"wrong parameters":   {"MAIL FROM:<a@x> X=1\r\n", maxErrors},
		} {
			got := codes(converse(t, srv, strings.NewReader(begin+strings.Repeat(tt.say, 5000))))
			if len(got) > 3+tt.most || len(got) < tt.most {
				t.Errorf("%s: %d replies, want about %d", name, len(got), tt.most)
			}
		}
		round := strings.Repeat("NOOP\r\n", maxCommands/2) + strings.Repeat("EXPN\r\n", maxErrors-1) +
			"MAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\nDATA\r\n" + rawMail("Hi.") + ".\r\n"
		got := codes(converse(t, srv, strings.NewReader("EHLO x\r\n"+strings.Repeat(round, 5)+"QUIT\r\n")))
		if got[len(got)-1] != "221" || len(k.kept) != 5 {
			t.Errorf("the last reply is %s, %d messages: a message does not reset the counts", got[len(got)-1], len(k.kept))
		}
	})
}
