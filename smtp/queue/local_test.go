package queue_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// received are the messages in an inbox.
func (w *world) received(t *testing.T, in store.Inbox) []store.Message {
	t.Helper()
	l, err := w.store.ListMessages(t.Context(), store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.DirectionIn,
	}, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return l.Rows
}

// rawOf is what is stored of a message.
func (w *world) rawOf(t *testing.T, m store.Message) (signature, raw string) {
	t.Helper()
	r, err := w.store.Raw(t.Context(), m.Seq)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return r.Signature, string(b)
}

func TestMailBetweenOurInboxes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := storetest.Inbox(t, w.store)
		third := storetest.Inbox(t, w.store)
		q := w.queue(t, 25, nil, func(c *queue.Config) { c.Resolver = noDNS{t}; c.Signer = w.signer(t, storetest.Domain) })
		tagged := strings.Replace(other.Address, "@", "+Orders@", 1)
		m := w.send(t, tagged, third.Address, "missing@"+storetest.Domain)

		round(t, q, 3)

		got := w.message(t, m)
		wantState(t, got.Recipients[0], store.RecipientDelivered, "250 2.0.0")
		wantState(t, got.Recipients[1], store.RecipientDelivered, "250 2.0.0")
		wantState(t, got.Recipients[2], store.RecipientBounced, "550 5.1.1 No such inbox here")
		if got.Status != store.MessageDelivered {
			t.Errorf("the message is %s", got.Status)
		}
		signature, raw := w.rawOf(t, m)
		for _, in := range []store.Inbox{other, third} {
			arrived := w.received(t, in)
			if len(arrived) != 1 {
				t.Fatalf("%s got %d messages", in.Address, len(arrived))
			}
			if _, there := w.rawOf(t, arrived[0]); there != signature+raw || signature == "" {
				t.Errorf("%s got\n%s\nnot the signed mail\n%s", in.Address, there, signature+raw)
			}
		}
		if tag := w.received(t, other)[0].Tag; tag == nil || *tag != "orders" {
			t.Errorf("tag %v", tag)
		}
		round(t, q, 0)
	})
}

// TestMailBetweenAccountsNamesTheSender sends a message to inboxes of two
// accounts. Both see which account sent it.
func TestMailBetweenAccountsNamesTheSender(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sender, err := w.store.PublicAccountID(t.Context(), w.inbox.AccountID)
		if err != nil {
			t.Fatal(err)
		}
		foreign := storetest.Inbox(t, w.store)
		own := storetest.Inbox(t, w.store, func(in *store.Inbox) { in.AccountID = w.inbox.AccountID })
		q := w.queue(t, 25, nil)
		w.send(t, foreign.Address, own.Address)

		round(t, q, 2)

		want := mail.AuthResult{SPF: "none", DKIM: "none", DMARC: "none", Internal: "pass", Account: sender}
		for _, in := range []store.Inbox{foreign, own} {
			arrived := w.received(t, in)
			if len(arrived) != 1 || arrived[0].Content.Auth == nil || arrived[0].Content.Auth.V != want {
				t.Errorf("%s got %+v, want one message with %+v", in.Address, arrived, want)
			}
		}
	})
}

// An inbox gets one copy of a message, whatever tags are used, as over SMTP.
func TestMailToTwoTagsOfAnInbox(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		one, other := storetest.Inbox(t, w.store), storetest.Inbox(t, w.store)
		q := w.queue(t, 25, nil)
		at := strings.IndexByte(one.Address, '@')
		m := w.send(t, one.Address[:at]+"+a"+one.Address[at:], other.Address, strings.ToUpper(one.Address[:at])+"+B"+one.Address[at:], one.Address)

		round(t, q, 4)

		for _, r := range w.message(t, m).Recipients {
			wantState(t, r, store.RecipientDelivered, "250 2.0.0")
		}
		arrived := w.received(t, one)
		if len(arrived) != 1 || arrived[0].Tag == nil || *arrived[0].Tag != "a" {
			t.Errorf("arrived: %+v", arrived)
		}
		if n := len(w.received(t, other)); n != 1 {
			t.Errorf("the other inbox got %d messages", n)
		}
		round(t, q, 0)
	})
}

// A message to an inbox that does not exist bounces, but the address is not
// suppressed: mail arrives once the inbox exists. The same holds on an account's
// own domain.
func TestMailToAnInboxCreatedLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		own := w.ownDomain(t, w.inbox.AccountID, "team.example")
		q := w.queue(t, 25, smtptest.Zones{"team.example.": smtptest.MXRecords(net.MX{Host: "mail.in.example.", Pref: 10})})
		for _, domain := range []string{w.inbox.Domain, own.Name} {
			address := "later@" + domain
			early := w.send(t, address)
			round(t, q, 1)
			w.wantRecipient(t, early, store.RecipientBounced, "550 5.1.1")
			w.wantListed(t, address, "")
			in := storetest.Inbox(t, w.store, func(in *store.Inbox) { in.AccountID, in.Address = w.inbox.AccountID, address })
			late := w.send(t, address)
			round(t, q, 1)
			w.wantRecipient(t, late, store.RecipientDelivered, "250")
			if n := len(w.received(t, in)); n != 1 {
				t.Errorf("%s got %d messages, want the second one", address, n)
			}
		}
	})
}

func TestMailToADeletedInbox(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		expired, deleted := storetest.Inbox(t, w.store), storetest.Inbox(t, w.store)
		q := w.queue(t, 25, nil)
		toExpired, toDeleted := w.send(t, expired.Address), w.send(t, deleted.Address)
		if _, err := w.store.DeleteInbox(t.Context(), deleted.AccountID, deleted.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.UpdateInbox(t.Context(), expired.AccountID, expired.ID, func(in *store.Inbox) error {
			past := store.NewTime(w.clock.Now().Add(-time.Minute))
			in.ExpiresAt = &past
			return nil
		}); err != nil {
			t.Fatal(err)
		}

		round(t, q, 2)

		w.wantRecipient(t, toExpired, store.RecipientBounced, "550 5.2.1")
		w.wantRecipient(t, toDeleted, store.RecipientBounced, "550 5.1.1")
	})
}

// localFault is a receive path that does not work.
type localFault struct{ err error }

func (f localFault) DeliverLocal(context.Context, smtp.Envelope, io.Reader, int64, []*store.Attempt) error {
	return f.err
}

func TestFaultOfTheReceivePath(t *testing.T) {
	tests := []struct {
		name     string
		err      error
		status   store.RecipientStatus
		response string
	}{
		{"the database is unreachable", store.ErrUnavailable, store.RecipientQueued, "451 4.3.0"},
		{"another error", errors.New("secret detail"), store.RecipientQueued, "451 4.3.0 Local error, will be tried again"},
		{"transient failure", &smtp.Reply{Code: 452, Enhanced: "4.3.1", Text: "full"}, store.RecipientQueued, "452 4.3.1 full"},
		{"permanent failure", &smtp.Reply{Code: 554, Enhanced: "5.4.6", Text: "loop"}, store.RecipientBounced, "554 5.4.6 loop"},
		{"the inbox was deleted", store.ErrNotFound, store.RecipientBounced, "550 5.1.1"},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				q := w.queue(t, 25, nil, func(c *queue.Config) { c.Local = localFault{tt.err} })
				m := w.send(t, "ann@"+storetest.Domain)

				round(t, q, 1)

				w.wantRecipient(t, m, tt.status, tt.response)
			})
		}
	})
}

// Every attempt sends the same bytes, so that duplicates can be detected (RFC
// 1047).
func TestEveryAttemptSendsTheSameBytes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var sent []string
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(m smtptest.Message) error {
			sent = append(sent, string(m.Data))
			if len(sent) < 3 {
				return smtptest.Refuse(451, [3]int{4, 3, 0}, "later")
			}
			return nil
		}})
		zones := smtptest.Zones{}.Domain("out.example", mx.IP())
		m := w.send(t, "bob@out.example")
		for range 3 { // a queue of its own for each: nothing is remembered
			q := w.queue(t, mx.Port(), zones, func(c *queue.Config) { c.Signer = w.signer(t, storetest.Domain) })
			round(t, q, 1)
			w.clock.Add(10 * time.Minute)
		}

		w.wantRecipient(t, m, store.RecipientDelivered, "250")
		signature, raw := w.rawOf(t, m)
		want := []string{signature + raw, signature + raw, signature + raw}
		if diff := cmp.Diff(want, sent); diff != "" || !strings.HasPrefix(signature, "DKIM-Signature:") {
			t.Errorf("signature %q\n%s", signature, diff)
		}
	})
}

// signer makes the keys of domain and a signer with them.
func (w *world) signer(t testing.TB, domain string) *queue.Signer {
	t.Helper()
	if err := queue.EnsureKeys(t.Context(), w.store, domain); err != nil {
		t.Fatal(err)
	}
	return queue.NewSigner(w.store, w.clock.Now)
}
