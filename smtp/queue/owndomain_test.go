package queue_test

import (
	"net"
	"testing"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// ownDomain is a domain that is verified for the account, with its RSA key.
func (w *world) ownDomain(t *testing.T, account int64, name string) store.Domain {
	t.Helper()
	keys, err := queue.NewKeys(name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := w.store.CreateDomain(t.Context(), store.Domain{AccountID: account, Name: name, Token: "t"}, keys[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	found := []store.DomainRecord{{Kind: "DKIM", Required: true, RecordLookup: store.RecordLookup{Status: store.RecordVerified}, Selector: keys[0].Selector}}
	if d, err = w.store.RecordCheck(t.Context(), d, found, true); err != nil || d.Status != store.DomainVerified {
		t.Fatalf("the domain is %s, %v", d.Status, err)
	}
	return d
}

// TestMailToAndFromAnAccountsDomain sends from an inbox on an account's domain to
// another whose MX host we are, until the first account gives its domain up.
func TestMailToAndFromAnAccountsDomain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ann, bob := storetest.Account(t, w.store).Seq, storetest.Account(t, w.store).Seq
		domain := w.ownDomain(t, ann, "ann.example")
		w.ownDomain(t, bob, "bob.example")
		on := func(account int64, address string) store.Inbox {
			return storetest.Inbox(t, w.store, func(in *store.Inbox) { in.AccountID, in.Address = account, address })
		}
		from, to, stray := on(ann, "desk@ann.example"), on(bob, "desk@bob.example"), on(ann, "stray@bob.example")
		zones := smtptest.Zones{}.Domain("bob.example", "127.0.0.1")
		zones["bob.example."] = smtptest.MXRecords(net.MX{Host: "mail.in.example.", Pref: 10})
		q := w.queue(t, 25, zones, func(c *queue.Config) { c.Signer = queue.NewSigner(w.store, w.clock.Now) })
		m := storetest.Sent(t, w.store, from, []string{to.Address, stray.Address, "missing@bob.example"})

		round(t, q, 3)

		got := w.message(t, m).Recipients
		wantState(t, got[0], store.RecipientDelivered, "250 2.0.0")
		wantState(t, got[1], store.RecipientBounced, "550 5.1.1") // an inbox of another account on it
		wantState(t, got[2], store.RecipientBounced, "550 5.1.1")
		if n := len(w.received(t, to)); n != 1 {
			t.Errorf("%d messages arrived", n)
		}
		if signature, _ := w.rawOf(t, m); signature == "" {
			t.Error("the mail is not signed by the key of its domain")
		}

		queued := storetest.Sent(t, w.store, from, []string{to.Address})
		if err := w.store.DeleteDomain(t.Context(), ann, domain.ID); err != nil {
			t.Fatal(err)
		}
		round(t, q, 1) // O12
		w.wantRecipient(t, queued, store.RecipientFailed, "550 5.7.1 The sender's domain is not verified")
	})
}
