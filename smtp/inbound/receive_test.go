package inbound

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// receive stores a message for the recipients.
func receive(t *testing.T, r *Receiver, env smtp.Envelope, raw string) ([]store.Message, error) {
	t.Helper()
	spool := r.NewSpool()
	defer func() {
		if err := spool.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := io.WriteString(spool, raw); err != nil {
		t.Fatal(err)
	}
	return r.Receive(t.Context(), env, spool)
}

func readRaw(t *testing.T, s *store.Store, m store.Message) string {
	t.Helper()
	raw, err := s.Raw(t.Context(), m.Seq)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	b, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const codeMail = "From: \"Sign Up\" <No-Reply@Out.example>\r\n" +
	"To: Bot <bot@in.example>, x@out.example\r\nCc: y@out.example\r\nReply-To: help@out.example\r\n" +
	"Subject: Re: Your code\r\nMessage-ID: <2@out.example>\r\nIn-Reply-To: <1@in.example>\r\n" +
	"References: <0@in.example> <1@in.example>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nYour verification code is 482913.\r\n" +
	"--b\r\nContent-Type: text/csv; name=a.csv\r\nContent-Disposition: attachment\r\n\r\n1,2\r\n--b--\r\n"

func TestReceiveStoresTheParsedMessage(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		r := newReceiver(t, s)

		ms, err := receive(t, r, smtp.Envelope{MailFrom: "bounce@out.example", RcptTo: []string{in.Address}}, codeMail)

		if err != nil || len(ms) != 1 {
			t.Fatalf("Receive() = %d messages, %v", len(ms), err)
		}
		m := only(t, s, in)
		want := store.Message{
			AccountID: in.AccountID, InboxSeq: in.Seq, InboxID: in.ID, ID: ms[0].ID, Direction: store.DirectionIn, Status: store.MessageReceived, RetentionDays: in.RetentionDays,
			FromEmail: "no-reply@out.example", Subject: "Re: Your code", HeaderID: "<2@out.example>", Automated: true, HasCode: true, Size: int64(len(codeMail)),
			DeliveredTo: &in.Address,
		}
		want.Labels.V = []string{}
		want.Addresses.V = mail.Addresses{
			From:    &mail.Address{Name: "Sign Up", Email: "No-Reply@out.example"},
			To:      []mail.Address{{Name: "Bot", Email: "bot@in.example"}, {Email: "x@out.example"}},
			Cc:      []mail.Address{{Email: "y@out.example"}},
			ReplyTo: []mail.Address{{Email: "help@out.example"}},
		}
		want.Refs.V = store.References{InReplyTo: []string{"<1@in.example>"}, References: []string{"<0@in.example>", "<1@in.example>"}}
		got := m
		got.Seq, got.ThreadSeq, got.ThreadID, got.CreatedAt, got.Content = 0, 0, "", store.Time{}, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		if m.Content.Snippet != "Your verification code is 482913." {
			t.Errorf("snippet %q", m.Content.Snippet)
		}
		if ex := m.Content.Extracted; ex == nil || ex.V.OTP == nil || *ex.V.OTP != "482913" {
			t.Errorf("extracted %+v", ex)
		}
		att := m.Content.Attachments.V
		if len(att) != 1 || att[0].Filename != "a.csv" || att[0].ContentType != "text/csv" || att[0].Part != 1 || !strings.HasPrefix(att[0].ID, "att_") {
			t.Errorf("attachments %+v", att)
		}
		if raw := readRaw(t, s, m); raw != codeMail {
			t.Errorf("raw is %q", raw)
		}
	})
}

// A sender whose address only looks the same in lower case is another sender.
func TestSimilarSendersAreDistinct(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		raw := "From: <\u212aAY@Out.example>\r\nSubject: Hi\r\n\r\nHi.\r\n"
		if _, err := receive(t, newReceiver(t, s), smtp.Envelope{MailFrom: "x@out.example", RcptTo: []string{in.Address}}, raw); err != nil {
			t.Fatal(err)
		}
		got, err := s.HaveWritten(t.Context(), in.Seq, []string{"kay@out.example", "\u212aay@out.example"}, false)
		if diff := cmp.Diff([]string{"\u212aay@out.example"}, got); err != nil || diff != "" {
			t.Errorf("senders of the inbox, error %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestReceiveKeepsLargeMail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		size  int
		inRow bool // raw in the row
	}{
		{"of 4 KB in its row", 4 << 10, true},
		{"of exactly 256 KiB in its row", store.RawInRow, true},
		{"of 300 KB in a blob", 300 << 10, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				a, b := storetest.Inbox(t, s), storetest.Inbox(t, s)
				r := newReceiver(t, s)
				raw := rawMail()
				text := strings.Repeat("0123456789abcde\r\n", tt.size/17+1)
				raw += text[len(text)-(tt.size-len(raw)):]

				if _, err := receive(t, r, smtp.Envelope{MailFrom: "a@out.example", RcptTo: []string{a.Address, b.Address}}, raw); err != nil {
					t.Fatal(err)
				}
				for _, in := range []store.Inbox{a, b} {
					m := only(t, s, in)
					if (m.Content.BlobKey == nil) != tt.inRow || m.Content.Body == nil {
						t.Fatalf("blob %v, body %t", m.Content.BlobKey, m.Content.Body != nil)
					}
					if got := readRaw(t, s, m); got != raw {
						t.Errorf("raw has %d bytes, not the %d that came", len(got), len(raw))
					}
					if !strings.Contains(m.Content.Body.V.Text, "0123456789abcde\n") {
						t.Error("the body beside the raw is not the text of the mail")
					}
				}
			})
		})
	}
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	r := newReceiver(t, s)
	hops := func(n int) string { return strings.Repeat("Received: from a by b; now\r\n\tand more\r\n", n) }
	padding := "X-Padding: " + strings.Repeat("x", 5000) + "\r\n" // more than is read at once
	tests := []struct {
		name, raw string
		rcpt      []string
		want      *smtp.Reply
	}{
		{"50 Received fields pass", hops(50) + rawMail("received: not a field"), nil, nil},
		{"51 Received fields", padding + hops(50) + "RECEIVED: x\r\n" + rawMail("Hi."), nil, replyLoop},
		{"51 Received fields behind empty lines", "\r\n\r\n" + hops(51) + rawMail("Hi."), nil, replyLoop},
		{"51 Received fields and no body", hops(50) + "Received: x", nil, replyLoop},
		{"Received fields in the body pass", rawMail(hops(60)), nil, nil},
		{"a header over the limit", strings.Repeat(padding, 220) + rawMail("Hi."), nil, replyHeaderTooLarge},
		{"no recipient", rawMail("Hi."), []string{}, replyNoRecipients},
		{"one recipient of two unknown", rawMail("Hi."), []string{in.Address, "missing@in.example"}, replyNoInbox},
	}
	stored := 0
	for _, tt := range tests {
		if tt.rcpt == nil {
			tt.rcpt = []string{in.Address}
		}
		_, err := receive(t, r, smtp.Envelope{MailFrom: "a@out.example", RcptTo: tt.rcpt}, tt.raw)
		var got *smtp.Reply
		if err != nil {
			got, _ = replyTo(err)
		} else {
			stored++
		}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if n := len(list(t, s, in)); n != stored {
		t.Errorf("%d messages stored, want %d", n, stored)
	}
}

func TestReceiveWhenAnInboxIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, b := storetest.Inbox(t, s), storetest.Inbox(t, s)
		r := newReceiver(t, s)
		to, err := resolveAll(t.Context(), []string{a.Address, b.Address}, r.target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteInbox(t.Context(), b.AccountID, b.ID); err != nil {
			t.Fatal(err)
		}
		raw := r.NewSpool()
		defer func() { _ = raw.Close() }()
		if _, err := io.WriteString(raw, rawMail("Hi.")); err != nil {
			t.Fatal(err)
		}
		_, err = r.deliver(t.Context(), smtp.Envelope{}, to, raw, nil)
		if got, _ := replyTo(err); got != replyTryLater {
			t.Errorf("deliver() = %v, want %v", err, replyTryLater)
		}
		if n := len(list(t, s, a)); n != 0 {
			t.Errorf("%d messages are stored in the other inbox before the client tries again", n)
		}
		if _, err := r.deliver(t.Context(), smtp.Envelope{}, to[1:], raw, nil); !errors.Is(err, replyNoInbox) {
			t.Errorf("deliver() to the deleted one alone = %v, want %v", err, replyNoInbox)
		}
		if _, err := r.Receive(t.Context(), smtp.Envelope{RcptTo: []string{a.Address}}, raw); err != nil {
			t.Error(err)
		}
		only(t, s, a)
	})
}

// queued queues a message from one inbox to another and claims it.
func queued(t *testing.T, s *store.Store, from, to store.Inbox) store.Claimed {
	t.Helper()
	storetest.Sent(t, s, from, []string{to.Address})
	claimed, err := s.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("ClaimRecipients() = %d, %v", len(claimed), err)
	}
	return claimed[0]
}

func TestDeliverLocal(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		from, to := storetest.Inbox(t, s), storetest.Inbox(t, s)
		r := newReceiver(t, s)
		c := queued(t, s, from, to)
		attempt := &store.Attempt{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered, Response: "250 stored"}
		env := smtp.Envelope{MailFrom: from.Address, RcptTo: []string{to.Address}}
		raw := rawMail(strings.Repeat("0123456789\r\n", 30<<20/12)) // larger than what SMTP takes
		deliver := func(env smtp.Envelope, attempt *store.Attempt, size int) error {
			return r.DeliverLocal(t.Context(), env, strings.NewReader(raw), int64(size), []*store.Attempt{attempt})
		}

		if err := deliver(env, attempt, len(raw)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("DeliverLocal() of less than its size = %v", err)
		}
		unknown := smtp.Envelope{MailFrom: from.Address, RcptTo: []string{"missing@in.example"}}
		if err := deliver(unknown, attempt, len(raw)); !errors.Is(err, replyNoInbox) {
			t.Errorf("DeliverLocal() to an unknown address = %v, want %v", err, replyNoInbox)
		}
		if err := deliver(env, attempt, len(raw)); err != nil {
			t.Fatalf("DeliverLocal() = %v", err)
		}
		again := *attempt
		if err := deliver(env, &again, len(raw)); !errors.Is(err, store.ErrState) {
			t.Errorf("DeliverLocal() again = %v, want %v", err, store.ErrState)
		}

		m := only(t, s, to)
		if m.Automated || m.Size != int64(len(raw)) || readRaw(t, s, m) != raw {
			t.Errorf("automated %t, size %d", m.Automated, m.Size)
		}
		if sent := only(t, s, from); sent.Status != store.MessageDelivered {
			t.Errorf("the sent message is %s, want delivered", sent.Status)
		}
	})
}

func TestReceiveReadsFewMessagesAtATime(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	r := newReceiver(t, s)
	for range cap(r.reading) {
		r.reading <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	raw := r.NewSpool()
	defer func() { _ = raw.Close() }()
	if _, err := r.parse(ctx, smtp.Envelope{}, raw, messageLimits()); !errors.Is(err, context.Canceled) {
		t.Errorf("parse() = %v while all slots are in use", err)
	}
	<-r.reading
	if _, err := receive(t, r, smtp.Envelope{RcptTo: []string{in.Address}}, rawMail("Hi.")); err != nil {
		t.Error(err)
	}
}
