package queue_test

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func newFeedback(t testing.TB, key string) *feedback.Signer {
	t.Helper()
	s, err := feedback.NewSigner(bytes.Repeat([]byte(key), 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reporting is a world with reports: sent messages arrive at an MX, and its
// reports arrive at a receiver.
type reporting struct {
	*world
	mx       *smtptest.MX
	queue    *queue.Queue
	receiver *inbound.Receiver
	helo     string // of the reporter: out.example authenticates mx.out.example
}

func newReporting(t *testing.T, w *world, edits ...func(*queue.Config)) *reporting {
	t.Helper()
	a := &reporting{world: w, mx: smtptest.NewMX(t, smtptest.MXConfig{}), helo: "mx.out.example"}
	edits = append([]func(*queue.Config){func(c *queue.Config) { c.Feedback = &queue.Feedback{Signer: newFeedback(t, "k")} }}, edits...)
	zones := smtptest.Zones{"_dmarc.out.example.": {TXT: []string{"v=DMARC1; p=reject"}}}.Domain("out.example", a.mx.IP())
	zones["mx.out.example."] = smtptest.Zone{A: []string{a.mx.IP()}, TXT: []string{"v=spf1 ip4:192.0.2.1 -all"}}
	a.queue = w.queue(t, a.mx.Port(), zones, edits...)
	var err error
	a.receiver, err = inbound.NewReceiver(inbound.ReceiverConfig{
		Store: w.store, Domain: storetest.Domain, TempDir: t.TempDir(), Now: w.clock.Now, Log: logTo(t), Feedback: newFeedback(t, "k"),
		Auth: mailauth.NewChecker(mailauth.NewCache(outbound.NewResolver(smtptest.NewDNS(t, zones)), nil), 0, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// delivered sends an email to Ann and returns it with its return path.
func (a *reporting) delivered(t *testing.T, edits ...func(*store.NewEmail)) (e store.Email, path string) {
	t.Helper()
	e = storetest.Email(t, a.store, a.inbox.AccountID, []string{"Ann@out.example"}, edits...)
	round(t, a.queue, 1)
	messages := a.mx.Messages()
	return e, messages[len(messages)-1].From
}

// receive receives a message, given with LF line ends.
func (a *reporting) receive(t *testing.T, from, to, mail string) error {
	t.Helper()
	raw := a.receiver.NewSpool()
	defer func() { _ = raw.Close() }()
	if _, err := raw.Write([]byte(strings.ReplaceAll(strings.ReplaceAll(mail, "\r\n", "\n"), "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
	_, err := a.receiver.Receive(t.Context(), smtp.Envelope{MailFrom: from, RcptTo: []string{to}, RemoteAddr: "192.0.2.1", HELO: a.helo}, raw)
	return err
}

func (a *reporting) wantReply(t *testing.T, from, to, mail, want string) {
	t.Helper()
	got := "250"
	if err := a.receive(t, from, to, mail); err != nil {
		got = err.Error()
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("reply to a message to %s: %q, want %q", to, got, want)
	}
}

// eventTypes returns the types of all events of the world's account.
func (a *reporting) eventTypes(t *testing.T) []string {
	t.Helper()
	all, err := a.store.EventsOf(t.Context(), a.inbox.AccountID, 0, math.MaxInt64, 1000)
	if err != nil {
		t.Fatal(err)
	}
	types := make([]string, 0, len(all))
	for _, e := range all {
		types = append(types, string(e.Type))
	}
	return types
}

// dsn is a delivery status notification (RFC 3464).
func dsn(recipient, action, status, diagnostic, messageID string) string {
	return fmt.Sprintf(`From: MAILER-DAEMON@mx.out.example
To: <someone>
Subject: Delivery report
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

About your mail.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.out.example

Final-Recipient: rfc822; %s
Action: %s
Status: %s
Diagnostic-Code: smtp; %s

--b
Content-Type: text/rfc822-headers

From: hello@in.example
Message-ID: %s
Subject: Mail

--b--
`, recipient, action, status, diagnostic, messageID)
}

// arf is a complaint (RFC 5965) whose recipient is left out.
func arf(kind, returnPath, messageID string) string {
	return fmt.Sprintf(`From: feedback@out.example
To: <someone>
Subject: Complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: text/plain

A recipient objects.

--b
Content-Type: message/feedback-report

Feedback-Type: %s
User-Agent: Loop/1.0
Version: 1
Original-Mail-From: <%s>

--b
Content-Type: message/rfc822

Message-ID: %s
From: hello@in.example
Subject: Mail

Hello.
--b--
`, kind, returnPath, messageID)
}

// Each recipient has a return path of their own, and so a transaction; mail
// through a relay asks for news of success too.
func TestReturnPaths(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		m := w.send(t, "ann@out.example", "bob@out.example", "carl@out.example")
		round(t, a.queue, 3)
		seen := map[string]bool{}
		for _, mail := range a.mx.Messages() {
			to, ok := newFeedback(t, "k").FindReturnPath(mail.From)
			if len(mail.To) != 1 || !ok || !strings.HasSuffix(mail.From, "@in.example") || seen[mail.From] {
				t.Fatalf("from %s to %v", mail.From, mail.To)
			}
			seen[mail.From] = true
			for _, r := range w.message(t, m).Recipients {
				if want := (feedback.Sent{Account: m.AccountID, Message: m.Seq, Recipient: r.Seq}); r.Email == mail.To[0] && to != want {
					t.Errorf("the return path of %s names %v, want %v", r.Email, to, want)
				}
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d messages", len(seen))
		}
	})
}

// Recipients with separate transactions share a connection, whatever the result of
// the previous one. After the limit of a connection, the next one continues.
func TestSeparateTransactionsShareAConnection(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		a.mx = smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(to string) error {
			switch {
			case strings.HasPrefix(to, "gone"):
				return smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user")
			case strings.HasPrefix(to, "later"):
				return smtptest.Refuse(450, [3]int{4, 2, 0}, "later")
			case strings.HasPrefix(to, "enough"):
				return smtptest.Refuse(421, [3]int{4, 7, 0}, "that was enough")
			}
			return nil
		}})
		a.queue = w.queue(t, a.mx.Port(), smtptest.Zones{}.Domain("out.example", a.mx.IP()), func(c *queue.Config) {
			c.Feedback = &queue.Feedback{Signer: newFeedback(t, "k")}
		})
		m := w.send(t, "ann@out.example", "gone@out.example", "bob@out.example", "later@out.example", "carl@out.example")
		round(t, a.queue, 5)
		want := []store.RecipientStatus{store.RecipientDelivered, store.RecipientBounced, store.RecipientDelivered, store.RecipientQueued, store.RecipientDelivered}
		for i, r := range w.message(t, m).Recipients {
			if r.Status != want[i] {
				t.Errorf("%s is %s", r.Email, r.Status)
			}
		}
		if a.mx.Conns() != 1 || len(a.mx.Messages()) != 3 {
			t.Errorf("%d connections for %d messages", a.mx.Conns(), len(a.mx.Messages()))
		}
		m = w.send(t, "ann@out.example", "enough@out.example", "bob@out.example")
		round(t, a.queue, 3)
		round(t, a.queue, 1) // at once
		for i, want := range []store.RecipientStatus{store.RecipientDelivered, store.RecipientQueued, store.RecipientDelivered} {
			if r := w.message(t, m).Recipients[i]; r.Status != want {
				t.Errorf("%s is %s", r.Email, r.Status)
			}
		}
	})
}

// A bounce to its reverse-path ends the recipient once, and suppresses it: no
// connection is made again (O6, O7).
func TestBounceIsRecorded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		e, path := a.delivered(t)
		if got := w.email(t, e); got.Status != store.MessageDelivered {
			t.Fatalf("the email is %s", got.Status)
		}
		bounce := dsn("ann@out.example", "failed", "5.1.1", "550 5.1.1 no such user", e.HeaderID)
		for range 2 { // the second says nothing new
			a.wantReply(t, "", strings.ToUpper(path), bounce, "250")
		}
		got := w.email(t, e)
		if r := got.Recipients[0]; got.Status != store.MessageBounced || r.BouncedAt == nil || *r.LastResponse != "550 5.1.1 no such user" {
			t.Errorf("%s, %+v", got.Status, r)
		}
		want := []string{"email.queued", "email.sent", "email.delivered", "email.bounced", "suppression.created"}
		if d := cmp.Diff(want, a.eventTypes(t)); d != "" {
			t.Error(d)
		}
		a.wantListed(t, "ann@out.example", store.SuppressedHardBounce)
		conns := a.mx.Conns()
		next := storetest.NewEmail(w.inbox.AccountID, []string{"ANN@out.example"})
		if _, err := w.store.EnqueueEmail(t.Context(), next, nil); err == nil || a.mx.Conns() != conns || len(a.mx.Messages()) != 1 {
			t.Errorf("the next email: %v, after %d more connections", err, a.mx.Conns()-conns)
		}
		if len(w.received(t, w.inbox)) != 0 {
			t.Error("the bounce of an email that no inbox sent is in an inbox")
		}
	})
}

// The reports that mail servers send, to the return path (O6).
func TestReportsOfMailServers(t *testing.T) {
	file := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../../internal/mail/testdata/mail", name+".eml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const (
		delivered  = store.RecipientDelivered
		bounced    = store.RecipientBounced
		complained = store.RecipientComplained
		hard       = store.SuppressedHardBounce
	)
	tests := []struct {
		name, mail string
		want       store.RecipientStatus
		listed     store.SuppressionReason
	}{
		{"hard", dsn("ann@out.example", "failed", "5.1.1", "550 5.1.1 no such user", ""), bounced, hard},
		{"forwarded to a dead address", dsn("ann@new.example", "failed", "5.1.1", "550 5.1.1 no such user", ""), bounced, hard},
		{"mailbox full", dsn("ann@out.example", "failed", "5.2.2", "552 5.2.2 mailbox full", ""), bounced, ""},
		{"delayed", dsn("ann@out.example", "delayed", "4.4.1", "451 4.4.1 no response", ""), delivered, ""},
		{"success", dsn("ann@out.example", "delivered", "2.0.0", "250 OK", ""), delivered, ""},
		{"Postfix", file("bounce-postfix"), bounced, hard},
		{"qmail", file("bounce-qmail"), bounced, hard},
		{"Exchange Online", file("bounce-exchange-online"), bounced, hard},
		{"Exim, mailbox full", file("bounce-exim-mailbox-full"), bounced, ""},
		{"content refused", file("bounce-content-refused"), bounced, ""},
		{"an automatic reply", file("auto-reply"), delivered, ""},
		{"complaint", arf("abuse", "", ""), complained, store.SuppressedComplaint},
		{"complaint about fraud", arf("fraud", "", ""), complained, store.SuppressedComplaint},
		{"not spam", arf("not-spam", "", ""), delivered, ""},
		{"a check that failed", arf("auth-failure", "", ""), delivered, ""},
		{"opt-out", arf("opt-out", "", ""), delivered, store.SuppressedUnsubscribe},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		for _, tt := range tests {
			e, path := a.delivered(t)
			_ = a.receive(t, "", path, tt.mail) // a message that reports nothing may be refused
			if got := w.email(t, e).Recipients[0].Status; got != tt.want {
				t.Errorf("%s: the recipient is %s, want %s", tt.name, got, tt.want)
			}
			a.wantListed(t, "ann@out.example", tt.listed)
			if tt.listed != "" {
				if _, err := w.store.DeleteSuppression(t.Context(), w.inbox.AccountID, "ann@out.example"); err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
			}
		}
	})
}

// A relay reports later that it has delivered.
func TestSuccessThroughARelay(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		var relay *outbound.Relay
		a := newReporting(t, w, func(c *queue.Config) {
			var err error
			if relay, err = outbound.ParseRelay(fmt.Sprintf("smtp://127.0.0.1:%d", c.MXPort)); err != nil {
				t.Fatal(err)
			}
			c.Relay = relay
		})
		e, path := a.delivered(t)
		if got := w.email(t, e).Status; got != store.MessageSent {
			t.Fatalf("the email is %s", got)
		}
		a.wantReply(t, "", path, dsn("ann@out.example", "relayed", "2.0.0", "250 OK", ""), "250")
		if got := w.email(t, e); got.Status != store.MessageDelivered || got.DeliveredAt == nil {
			t.Errorf("the email is %s", got.Status)
		}
	})
}

// A report that could have been written without handling the message changes
// nothing (O6).
func TestForgedReports(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		e, path := a.delivered(t)
		_, otherPath := a.delivered(t)
		fromInbox := func(n *store.NewEmail) { n.FromInbox = &w.inbox.Seq }
		mine, _ := a.delivered(t, fromInbox)
		toTwo := w.send(t, "ann@out.example", "bob@out.example")
		round(t, a.queue, 2)
		stranger := storetest.Inbox(t, w.store) // of another account
		before := a.eventTypes(t)
		bounce := func(id string) string { return dsn("ann@out.example", "failed", "5.1.1", "550 5.1.1 no such user", id) }
		local, _, _ := strings.Cut(path, "@")
		changed := strings.Replace(path, local[20:21], map[bool]string{true: "b", false: "a"}[local[20] == 'a'], 1)
		foreign := newFeedback(t, "other").ReturnPath(feedback.Sent{Account: e.AccountID, Message: e.Seq, Recipient: e.Recipients[0].Seq}, "in.example")
		deleted := newFeedback(t, "k").ReturnPath(feedback.Sent{Account: e.AccountID, Message: e.Seq, Recipient: 1 << 40}, "in.example")
		mixed := newFeedback(t, "k").ReturnPath(feedback.Sent{Account: e.AccountID + 1, Message: e.Seq, Recipient: 1}, "in.example")
		for _, forged := range []string{changed, foreign, deleted, mixed, strings.Replace(path, "@in.example", "a@in.example", 1)} {
			a.wantReply(t, "", forged, bounce(e.HeaderID), "550 5.1.1")
		}
		a.wantReply(t, "", path, "From: a@b.example\nSubject: Hi\n\nHello.\n", "550 5.7.1")
		a.wantReply(t, "a@b.example", path, "From: a@b.example\nSubject: Hi\n\nHello.\n", "550 5.7.1")
		// By Message-ID, to another inbox than the sender, or about another
		// recipient.
		a.wantReply(t, "", stranger.Address, bounce(mine.HeaderID), "250")
		a.wantReply(t, "", w.inbox.Address, bounce(e.HeaderID), "250") // of this account, but not of this inbox
		a.wantReply(t, "", w.inbox.Address, bounce("<unknown@in.example>"), "250")
		a.wantReply(t, "", w.inbox.Address, dsn("bob@out.example", "failed", "5.1.1", "550 no", mine.HeaderID), "250")
		a.wantReply(t, "", w.inbox.Address, bounce(toTwo.HeaderID), "250") // bob knows that it is to ann
		a.wantReply(t, "", w.inbox.Address, arf("abuse", changed, "<unknown@in.example>"), "250")
		a.wantReply(t, "", w.inbox.Address, arf("abuse", "", mine.HeaderID), "250")
		// The reader of a forwarded message knows the Message-ID.
		a.helo = "mx.forger.example"
		a.wantReply(t, "", w.inbox.Address, bounce(mine.HeaderID), "250")
		a.wantReply(t, "", w.inbox.Address, dsn("ann@out.example", "delivered", "2.0.0", "250 OK", mine.HeaderID), "250")
		a.wantReply(t, "ann@out.example", w.inbox.Address, "From: ann@out.example\nSubject: unsubscribe\nAuto-Submitted: auto-generated\nIn-Reply-To: "+mine.HeaderID+"\n\nBye.\n", "250")
		// A bounce from a stranger arrives as an ordinary message.
		a.wantReply(t, "a@b.example", w.inbox.Address, "From: a@b.example\nSubject: Undelivered\n\nann@out.example: 550 5.1.1 no such user\n", "250")

		for _, email := range []store.Email{e, mine} {
			if got := w.email(t, email); got.Status != store.MessageDelivered {
				t.Errorf("the email is %s", got.Status)
			}
		}
		after := a.eventTypes(t)
		arrived := 0
		for _, typ := range after[len(before):] {
			if typ != "message.received" {
				t.Errorf("event %s", typ)
			}
			arrived++
		}
		if got := w.message(t, toTwo); got.Status != store.MessageDelivered {
			t.Errorf("the message to two is %s", got.Status)
		}
		if arrived != 10 || len(w.received(t, stranger)) != 1 {
			t.Errorf("%d messages arrived, and %d at the other account's inbox", arrived, len(w.received(t, stranger)))
		}
		a.wantListed(t, "ann@out.example", "")
		a.wantReply(t, "", otherPath, bounce(""), "250") // the real one still works
		a.wantListed(t, "ann@out.example", store.SuppressedHardBounce)
	})
}

// The bounce of an inbox message arrives in the inbox. It is recognized by the
// reverse-path that it is sent to, by the reverse-path that it contains, or by
// Message-ID and recipient (O6).
func TestBounceOfAnInbox(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		for i, tt := range []struct {
			name  string
			alone bool // the mail has one recipient
			by    func(path, id string) (to, mail string)
		}{
			{"return path", false, func(path, _ string) (string, string) {
				return path, dsn("ann@out.example", "failed", "5.1.1", "550 5.1.1 no such user", "")
			}},
			{"Message-ID and recipient", true, func(_, id string) (string, string) {
				return w.inbox.Address, dsn("ANN@out.example", "failed", "5.1.1", "550 5.1.1 no such user", id)
			}},
			{"complaint to a mailbox for them", false, func(path, id string) (string, string) { return w.inbox.Address, arf("abuse", path, id) }},
		} {
			rcpts := []string{"ann@out.example", "bob@out.example"}
			if tt.alone {
				rcpts = rcpts[:1]
			}
			m := w.send(t, rcpts...)
			round(t, a.queue, len(rcpts))
			var path string
			for _, mail := range a.mx.Messages() {
				if mail.To[0] == "ann@out.example" {
					path = mail.From // the latest
				}
			}
			to, mail := tt.by(path, m.HeaderID)
			for range 2 {
				a.wantReply(t, "", to, mail, "250")
			}
			got := w.message(t, m)
			for _, r := range got.Recipients {
				if (r.Status == store.RecipientDelivered) != (r.Email == "bob@out.example") {
					t.Errorf("%s: %s is %s", tt.name, r.Email, r.Status)
				}
			}
			if n := len(w.received(t, w.inbox)); n != 2*(i+1) {
				t.Errorf("%s: %d messages arrived in the inbox", tt.name, n)
			}
			events := strings.Join(a.eventTypes(t), " ")
			if n := strings.Count(events, "message.bounced") + strings.Count(events, "message.complained"); n != i+1 {
				t.Errorf("%s: %d events", tt.name, n)
			}
			if _, err := w.store.DeleteSuppression(t.Context(), w.inbox.AccountID, "ann@out.example"); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		// The inbox is gone: the bounce is still known.
		m, path := w.send(t, "carl@out.example"), ""
		round(t, a.queue, 1)
		for _, mail := range a.mx.Messages() {
			path = mail.From
		}
		if _, err := w.store.DeleteInbox(t.Context(), w.inbox.AccountID, w.inbox.ID); err != nil {
			t.Fatal(err)
		}
		a.wantReply(t, "", path, dsn("carl@out.example", "failed", "5.1.1", "550 5.1.1 no such user", m.HeaderID), "250")
		a.wantListed(t, "carl@out.example", store.SuppressedHardBounce)
	})
}

// Each recipient of marketing mail gets a link of their own, with one click, in
// header fields that both signatures cover; other mail has none (O8).
func TestMarketingCanBeUnsubscribed(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		base, err := url.Parse("https://mail.example")
		if err != nil {
			t.Fatal(err)
		}
		refuse := true
		a := &reporting{world: w}
		a.mx = smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			if refuse {
				return smtptest.Refuse(451, [3]int{4, 3, 0}, "later")
			}
			return nil
		}})
		a.queue = w.queue(t, a.mx.Port(), smtptest.Zones{}.Domain("out.example", a.mx.IP()), func(c *queue.Config) {
			c.Feedback = &queue.Feedback{Signer: newFeedback(t, "k"), BaseURL: base}
			c.Signer = w.signer(t, storetest.Domain)
		})
		to := []string{"Ann@out.example", "bob@out.example"}
		e := storetest.Email(t, w.store, w.inbox.AccountID, to, func(e *store.NewEmail) { e.Category = store.CategoryMarketing })
		round(t, a.queue, 2)
		refuse = false
		w.clock.Add(2 * time.Minute)
		round(t, a.queue, 2)
		messages := a.mx.Messages()
		if len(messages) != 2 {
			t.Fatalf("%d messages", len(messages))
		}
		for _, mail := range messages {
			header, _, _ := strings.Cut(string(mail.Data), "\r\n\r\n")
			want := "\r\n" + newFeedback(t, "k").UnsubscribeFields(base, feedback.Subscription{Account: e.AccountID, Message: e.Seq, Email: mail.To[0]})
			if !strings.Contains(header+"\r\n", want) || strings.Count(header, "\r\nList-Unsubscribe:") != 1 {
				t.Errorf("the mail to %s has no\n%s\n%s", mail.To[0], want, header)
			}
			vs := w.verify(t, storetest.Domain, bytes.NewReader(mail.Data))
			if len(vs) != 2 {
				t.Errorf("%d signatures", len(vs))
			}
			for _, v := range vs {
				if v.Err != nil || !slices.Contains(v.HeaderKeys, "List-Unsubscribe") || !slices.Contains(v.HeaderKeys, "List-Unsubscribe-Post") {
					t.Errorf("a signature of %v: %v", v.HeaderKeys, v.Err)
				}
			}
		}
		storetest.Email(t, w.store, w.inbox.AccountID, to[:1])
		round(t, a.queue, 1)
		if messages := a.mx.Messages(); bytes.Contains(messages[2].Data, []byte("List-Unsubscribe")) {
			t.Errorf("transactional mail has a link:\n%s", messages[2].Data)
		}
	})
}

// A domain has its own return paths once its records are published.
func TestReturnPathOnAnAccountsDomain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := newReporting(t, w)
		account := w.inbox.AccountID
		d := w.ownDomain(t, account, "ann.example")
		from := func(e *store.NewEmail) { e.FromEmail = "hello@ann.example" }
		record := func(spf, mx store.RecordStatus) {
			t.Helper()
			var err error
			d, err = w.store.RecordCheck(t.Context(), d, []store.DomainRecord{
				{Kind: "SPF", Name: "bounces.ann.example", RecordLookup: store.RecordLookup{Status: spf}},
				{Kind: "RETURN_PATH", Name: "bounces.ann.example", RecordLookup: store.RecordLookup{Status: mx}},
			}, true)
			if err != nil {
				t.Fatal(err)
			}
		}
		want := func(domain string) {
			t.Helper()
			if _, path := a.delivered(t, from); !strings.HasSuffix(path, "@"+domain) {
				t.Errorf("the return path is %s, want one on %s", path, domain)
			}
		}
		want("in.example")
		record(store.RecordVerified, store.RecordMissing)
		want("in.example")
		record(store.RecordVerified, store.RecordVerified)
		want("bounces.ann.example")
		e, path := a.delivered(t, from)
		a.wantReply(t, "", path, dsn("ann@out.example", "failed", "5.2.2", "552 5.2.2 full", ""), "250")
		if got := w.email(t, e).Status; got != store.MessageBounced {
			t.Errorf("the email is %s", got)
		}
		a.wantReply(t, "", "bounce+newsletter@bounces.ann.example", "Subject: Hi\n\nHello.\n", "550 5.7.1")
	})
}
