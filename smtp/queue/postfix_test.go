//go:build clients && unix

package queue_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// realMail is one mail and what a real Postfix makes of it for each recipient.
type realMessage struct {
	name string
	body string // after the header
	subj string
	to   map[string]string // what the response begins with, by recipient; 2 is taken
}

func realMessages(domain string) []realMessage {
	line := strings.Repeat("0123456789", 7) + "\r\n"
	messages := []realMessage{
		{"accepted", "Hello.\r\n", "plain", map[string]string{"ann@DOMAIN": "250 2.0.0"}},
		{"refused", "Hello.\r\n", "plain", map[string]string{"gone@DOMAIN": "550 5.1.1 <gone@DOMAIN>: Recipient address rejected: mailbox closed"}},
		{"unknown", "Hello.\r\n", "plain", map[string]string{"missing@DOMAIN": "550 5.1.1 <missing@DOMAIN>"}},
		{"deferred", "Hello.\r\n", "plain", map[string]string{"busy@DOMAIN": "450 4.2.1 <busy@DOMAIN>: Recipient address rejected: come again"}},
		{"one of each", "Hello.\r\n", "plain", map[string]string{
			"ann@DOMAIN": "250 2.0.0", "gone@DOMAIN": "550 5.1.1", "busy@DOMAIN": "450 4.2.1", "bob@DOMAIN": "250 2.0.0",
			"missing@DOMAIN": "550 5.1.1",
		}},
		{"refused after the mail", "Hello.\r\n", "a virus", map[string]string{"ann@DOMAIN": "550 5.7.1 bad subject", "bob@DOMAIN": "550 5.7.1 bad subject"}},
		{"large", strings.Repeat(line, 30_000), "large", map[string]string{"bob@DOMAIN": "250 2.0.0"}},
		{"too large", strings.Repeat(line, 50_000), "larger", map[string]string{"bob@DOMAIN": "552 5.3.4"}},
		{"8 bit", "Grüße, Дима, 你好.\r\n\r\n.\r\n..dots\r\n", "8 bit", map[string]string{"ann@DOMAIN": "250 2.0.0"}},
		{"long lines", strings.Repeat("x", 900) + "\r\n" + strings.Repeat("é", 498) + "\r\n", "long", map[string]string{"ann@DOMAIN": "250 2.0.0"}},
		{"an international address", "Привет.\r\n", "привет", map[string]string{"дима@DOMAIN": "250 2.0.0"}},
	}
	for i, m := range messages {
		messages[i].to = map[string]string{}
		for rcpt, reply := range m.to {
			messages[i].to[strings.ReplaceAll(rcpt, "DOMAIN", domain)] = strings.ReplaceAll(reply, "DOMAIN", domain)
		}
	}
	return messages
}

// A real Postfix as the MX of a domain and as the relay for everything: every
// recipient has the state that Postfix replied, and what is in the mailboxes is
// what was sent, signatures included.
func TestPostfix(t *testing.T) {
	t.Parallel()
	p := startPostfix(t)
	t.Run("as the MX", func(t *testing.T) {
		w := newWorld(t, storetest.Config(t, storetest.SQLite))
		q := w.queue(t, p.port(), smtptest.Zones{}.Domain("out.example", "127.0.0.1"),
			func(c *queue.Config) { c.Signer = w.signer(t, storetest.Domain) })
		w.exchange(t, p, q, "out.example", store.RecipientDelivered)
	})
	t.Run("as the relay", func(t *testing.T) {
		w := newWorld(t, storetest.Config(t, storetest.SQLite))
		q := w.queue(t, 25, nil, func(c *queue.Config) {
			c.Relay, c.Resolver, c.Signer = relay(t, "smtp://%s", p.addr), noDNS{t}, w.signer(t, storetest.Domain)
		})
		w.exchange(t, p, q, "relayed.example", store.RecipientSent)
	})
	t.Run("many messages", func(t *testing.T) { postfixTakesMany(t, p) })
}

// exchange sends the real messages and checks the states and mailboxes.
func (w *world) exchange(t *testing.T, p *postfix, q *queue.Queue, domain string, taken store.RecipientStatus) {
	t.Helper()
	arrive := map[string][][]byte{} // by mailbox
	sent := map[string]store.Message{}
	n := 0
	for _, tt := range realMessages(domain) {
		raw := []byte("From: Ann <" + w.inbox.Address + ">\r\nTo: undisclosed-recipients:;\r\nSubject: " + tt.subj +
			"\r\nMessage-ID: <" + strings.ReplaceAll(tt.name, " ", "-") + "@in.example>\r\nDate: Mon, 02 Mar 2026 10:00:00 +0000\r\n" +
			"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" + tt.body)
		var to []string
		for rcpt, reply := range tt.to {
			to = append(to, rcpt)
			if strings.HasPrefix(reply, "2") {
				arrive[rcpt] = append(arrive[rcpt], raw)
			}
		}
		sent[tt.name] = storetest.Sent(t, w.store, w.inbox, to, func(m *store.NewMessage) {
			m.Content.Raw, m.FromEmail, m.Size = raw, w.inbox.Address, int64(len(raw))
		})
		n += len(to)
	}

	round(t, q, n)

	for _, tt := range realMessages(domain) {
		for _, r := range w.message(t, sent[tt.name]).Recipients {
			want := map[byte]store.RecipientStatus{'2': taken, '4': store.RecipientQueued, '5': store.RecipientBounced}[tt.to[r.Email][0]]
			if r.Status != want || r.LastResponse == nil || !strings.HasPrefix(*r.LastResponse, tt.to[r.Email]) {
				t.Errorf("%s: %s is %s with %q, want %s with %q", tt.name, r.Email, r.Status, *r.LastResponse, want, tt.to[r.Email])
			}
		}
	}
	for box, raws := range arrive {
		messages := p.messages(t, box, len(raws))
		if len(messages) != len(raws) {
			t.Errorf("%s has %d messages, want %d", box, len(messages), len(raws))
		}
		for _, raw := range raws {
			w.wantIntact(t, box, messages, raw)
		}
	}
}

// wantIntact fails the test unless one of the messages is the original, below the
// fields that Postfix and our signer added, and the signatures verify.
func (w *world) wantIntact(t *testing.T, box string, messages [][]byte, raw []byte) {
	t.Helper()
	for _, mail := range messages {
		if !bytes.HasSuffix(mail, raw) {
			continue
		}
		if !bytes.Contains(mail, []byte("using TLS")) {
			t.Errorf("%s: Postfix got the mail in the clear", box)
		}
		vs := w.verify(t, storetest.Domain, bytes.NewReader(mail))
		if len(vs) != 2 {
			t.Errorf("%s: %d signatures", box, len(vs))
		}
		for _, v := range vs {
			if v.Err != nil {
				t.Errorf("%s: %v", box, v.Err)
			}
		}
		return
	}
	t.Errorf("%s does not have the mail of %d bytes: %.300q", box, len(raw), raw)
}

// postfixTakesMany sends many messages to one server: they use one connection in
// turn, each with a pipelined envelope.
func postfixTakesMany(t *testing.T, p *postfix) {
	t.Helper()
	w := newWorld(t, storetest.Config(t, storetest.SQLite))
	q := w.queue(t, p.port(), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) { c.MaxPerDomain = 1 })
	const n = 40
	var sent []store.Message
	for i := range n {
		sent = append(sent, storetest.Sent(t, w.store, w.inbox, []string{"one@out.example", "two@out.example"}, func(m *store.NewMessage) {
			m.Content.Raw = fmt.Appendf(nil, "From: %s\r\nSubject: %d of many\r\n\r\nHello.\r\n", w.inbox.Address, i)
		}))
	}

	round(t, q, 2*n)

	for _, m := range sent {
		for _, r := range w.message(t, m).Recipients {
			wantState(t, r, store.RecipientDelivered, "250 2.0.0")
		}
	}
	if messages := p.messages(t, "one@out.example", n); len(messages) != n {
		t.Errorf("%d messages arrived, want %d", len(messages), n)
	}
	q.Close() // then Postfix says what the connection was used for
	waittest.Until(t, "one connection was used for all messages", func() bool {
		return strings.Contains(p.log(t), fmt.Sprintf(" starttls=1 mail=%d rcpt=%d data=%d rset=%d quit=1", n, 2*n, n, n-1))
	})
	if strings.Contains(p.log(t), "improper command pipelining") {
		t.Error("Postfix does not like how its client pipelines")
	}
}
