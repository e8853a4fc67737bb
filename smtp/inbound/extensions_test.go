package inbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// chunkOf is BDAT with a chunk.
func chunkOf(raw, last string) string { return fmt.Sprintf("BDAT %d%s\r\n%s", len(raw), last, raw) }

// S11: the extensions in the EHLO reply work, others are refused, and the command
// after each gets its own reply. Every session starts with EHLO and ends with
// QUIT.
func TestExtensionsWork(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		const limit = 10_000
		_, addr := serve(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.MaxSize, c.MaxRecipients = limit, 3 })
		const (
			from = "MAIL FROM:<a@out.example>\r\n"
			rcpt = "RCPT TO:<" + bot + ">\r\n"
			to   = from + rcpt
		)
		hi, last := rawMail("Hi."), " LAST"
		cases := []struct {
			name, say, want string
			stored          int
		}{
			{"8BITMIME: BODY=8BITMIME", "MAIL FROM:<a@out.example> BODY=8BITMIME\r\n" + rcpt + chunkOf(rawMail("grüße"), last), "250 250 250", 1},
			{"8BITMIME: BODY=7BIT", "MAIL FROM:<a@out.example> body=7bit\r\n" + rcpt + chunkOf(hi, last), "250 250 250", 1},
			{"8BITMIME: another BODY", "MAIL FROM:<a@out.example> BODY=9BIT\r\n", "555", 0},
			{"BINARYMIME is not offered", "MAIL FROM:<a@out.example> BODY=BINARYMIME\r\n", "555", 0},
			{"SMTPUTF8: both addresses", "MAIL FROM:<ännä@bücher.example> SMTPUTF8\r\n" + rcpt + chunkOf(hi, last), "250 250 250", 1},
			{"SMTPUTF8: with a value", "MAIL FROM:<a@out.example> SMTPUTF8=1\r\n", "501", 0},
			{"SMTPUTF8: not asked for", "MAIL FROM:<ännä@bücher.example>\r\n", "553", 0},
			{"SMTPUTF8: a recipient that is refused", "MAIL FROM:<a@out.example> SMTPUTF8\r\nRCPT TO:<" + p.no + ">\r\n", "250 " + p.noCode, 0},
			{"SMTPUTF8: recipient without it", from + "RCPT TO:<bót@in.example>\r\n", "250 553", 0},
			{"SMTPUTF8: raw header", "MAIL FROM:<a@out.example> SMTPUTF8\r\n" + rcpt + chunkOf("Subject: Grüße\r\n\r\n", last), "250 250 250", 1},
			{"SIZE: without a value", "MAIL FROM:<a@out.example> SIZE\r\n", "501", 0},
			{"SIZE: the limit", "MAIL FROM:<a@out.example> SIZE=10000\r\n", "250", 0},
			{"SIZE: over it", "MAIL FROM:<a@out.example> SIZE=10001\r\n", "552", 0},
			{"SIZE: twice", "MAIL FROM:<a@out.example> SIZE=1 SIZE=2\r\n", "501", 0},
			{"SIZE: a lie", "MAIL FROM:<a@out.example> SIZE=1\r\n" + rcpt + chunkOf(hi, last), "250 250 250", 1},
			{"LIMITS: RCPTMAX", from + strings.Repeat(rcpt, 4) + chunkOf(hi, last), "250 250 250 250 452 250", 1},
			{"CHUNKING: all in one", to + chunkOf(hi, last), "250 250 250", 1},
			{"CHUNKING: 0 LAST at once", to + "BDAT 0 LAST\r\n", "250 250 250", 1},
			{"CHUNKING: 0, then 0 LAST", to + "BDAT 0\r\nBDAT 0 LAST\r\n", "250 250 250 250", 1},
			{"CHUNKING: 0 LAST after a chunk", to + chunkOf(hi, "") + "BDAT 0 LAST\r\n", "250 250 250 250", 1},
			{"CHUNKING: byte by byte", to + bytewise(hi) + "BDAT 0 LAST\r\n", "250 250 " + strings.Repeat("250 ", len(hi)) + "250", 1},
			{"CHUNKING: a line end between two", to + chunkOf("A: b\r", "") + chunkOf("\n\r\nHi\r\n", last), "250 250 250 250", 1},
			{"CHUNKING: a dot on a line", to + chunkOf("A: b\r\n\r\n.\r\n..\r\n", last), "250 250 250", 1},
			{"CHUNKING: commands in a chunk", to + chunkOf("RSET\r\nQUIT\r\n.\r\n", last), "250 250 250", 1},
			{"CHUNKING: last in lower case", to + chunkOf(hi, " last"), "250 250 250", 1},
			{"CHUNKING: RSET inside", to + chunkOf(hi, "") + "RSET\r\nBDAT 0 LAST\r\n", "250 250 250 250 503", 0},
			{"CHUNKING: EHLO inside", to + chunkOf(hi, "") + "EHLO y\r\nBDAT 0 LAST\r\n", "250 250 250 250 503", 0},
			{"CHUNKING: NOOP and VRFY inside", to + chunkOf(hi, "") + "NOOP\r\nVRFY x\r\nBDAT 0 LAST\r\n", "250 250 250 250 252 250", 1},
			{"CHUNKING: DATA inside", to + chunkOf(hi, "") + "RSET\r\n" + to + chunkOf(hi, last), "250 250 250 250 250 250 250", 1},
			{"CHUNKING: without a sender", chunkOf("QUIT\r\n", last), "503", 0},
			{"CHUNKING: without a recipient", from + chunkOf("QUIT\r\n", last), "250 503", 0},
			{"CHUNKING: after a recipient that was refused", from + "RCPT TO:<" + p.no + ">\r\n" + chunkOf("QUIT\r\n", "") + chunkOf("QUIT\r\n", last), "250 " + p.noCode + " 503 503", 0},
			{"CHUNKING: over the limit", to + chunkOf(strings.Repeat("x", limit+1), last), "250 250 552", 0},
			{"CHUNKING: over it in the second", to + chunkOf(sized(limit), "") + chunkOf("x\r\n", "") + chunkOf("QUIT\r\n", last), "250 250 250 552 503", 0},
			{"CHUNKING: exactly the limit", to + chunkOf(sized(limit), "") + "BDAT 0 LAST\r\n", "250 250 250 250", 1},
			{"CHUNKING: a size too small leaves commands", to + "BDAT 4 LAST\r\nab\r\nNOOP\r\n", "250 250 250 250", 1},
			{"CHUNKING: two messages", to + chunkOf(hi, last) + to + chunkOf(hi, last), "250 250 250 250 250 250", 2},
			{"CHUNKING: and DATA after it", to + chunkOf(hi, last) + to + "DATA\r\n", "250 250 250 250 250 354", 1},
			{"ENHANCEDSTATUSCODES and PIPELINING: all at once", "NOOP\r\nVRFY x\r\nHELP\r\nEXPN x\r\nRSET\r\n" + to + chunkOf(hi, last), "250 252 214 502 250 250 250 250", 1},
			{"DSN is not offered", "MAIL FROM:<a@out.example> RET=HDRS\r\n" + from + "RCPT TO:<bot@in.example> NOTIFY=NEVER\r\n", "555 250 555", 0},
			{"AUTH", "AUTH PLAIN AGEAYg==\r\nMAIL FROM:<a@out.example> AUTH=<>\r\n", map[bool]string{false: "502 555", true: "235 250"}[p.submits], 0},
			{"STARTTLS is not offered", "STARTTLS\r\nETRN x\r\n", "502 502", 0},
		}
		if len(cases) < 40 {
			t.Errorf("%d cases", len(cases))
		}
		total := 0
		for _, tt := range cases {
			end, reply := "QUIT\r\n", "221"
			if strings.HasSuffix(tt.want, "354") {
				end, reply = "A: b\r\n.\r\nQUIT\r\n", "250 221"
				tt.stored++
			}
			want := append(strings.Fields(tt.want), strings.Fields(reply)...)
			if got := codes(talk(t, addr, "EHLO x\r\n"+tt.say+end))[2:]; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", tt.name, got, want)
			}
			n := len(list(t, s, in))
			if n-total != tt.stored {
				t.Errorf("%s: %d messages, want %d", tt.name, n-total, tt.stored)
			}
			total = n
		}
	})
}

func bytewise(raw string) string {
	var b strings.Builder
	for i := range len(raw) {
		b.WriteString(chunkOf(raw[i:i+1], ""))
	}
	return b.String()
}

// A wrong or missing size ends the session: the end of the chunk is unknown
// (S11).
func TestInvalidChunkSizesEndTheSession(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		_, addr := serve(t, newReceiver(t, s), p.kind)
		for _, size := range []string{"", "x", "-1", "+1", "1 FIRST", "1 LAST x", "4294967296", "99999999999999999999", "1,000", "0x10"} {
			got := strings.Join(codes(talk(t, addr, states[3]+"BDAT "+size+"\r\nRSET\r\nQUIT\r\n")), " ")
			if got != "220 250 250 250 501" {
				t.Errorf("BDAT %s: %s", size, got)
			}
		}
		for _, say := range []string{"BDAT 100 LAST\r\n" + rawMail(), "BDAT 10\r\nA: b\r\n", "BDAT 4294967295 LAST\r\nA: b\r\n"} {
			got := codes(talk(t, addr, states[3]+say))
			if last := got[len(got)-1]; last != "421" && last != "552" {
				t.Errorf("%q and the end: %v", say, got)
			}
		}
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// An inbox of an internationalized domain gets mail under both of its forms (S11).
func TestInternationalizedDomain(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s, func(in *store.Inbox) { in.Address = "bot@xn--bcher-kva.example" })
	_, addr := serve(t, newReceiver(t, s, func(c *ReceiverConfig) { c.Domain = "xn--bcher-kva.example" }))
	say := "EHLO x\r\nMAIL FROM:<ännä@out.example> SMTPUTF8\r\nRCPT TO:<bot+ä@BÜCHER.example>\r\nRCPT TO:<bot@xn--bcher-kva.example>\r\n" +
		"RCPT TO:<bot@bucher.example>\r\nRCPT TO:<bot@büchеr.example>\r\n" + chunkOf(rawMail("Hi."), " LAST") // the second е is Cyrillic
	if got := strings.Join(codes(talk(t, addr, say)), " "); got != "220 250 250 250 250 550 550 250" {
		t.Errorf("replies %s", got)
	}
	if m := only(t, s, in); m.Tag == nil || *m.Tag != "ä" {
		t.Errorf("tag %v", m.Tag)
	}
}
