package queue_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestKeysChangeUnderTheQueue is row K2: mail that was queued, signed, deferred and
// sent while the keys of its domain change is never unsigned, and verifies with the
// records that the domain shows when it arrives.
func TestKeysChangeUnderTheQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		account := storetest.Account(t, w.store).Seq
		d := w.ownDomain(t, account, "ann.example")
		in := storetest.Inbox(t, w.store, func(in *store.Inbox) { in.AccountID, in.Address = account, "desk@ann.example" })
		first := d.Keys[0].Selector
		var defers atomic.Bool
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			if defers.Load() {
				return smtptest.Refuse(451, [3]int{4, 2, 0}, "later")
			}
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) { c.Signer = queue.NewSigner(w.store, w.clock.Now) })
		n := 0
		send := func() { n++; storetest.Sent(t, w.store, in, []string{fmt.Sprintf("r%d@out.example", n)}) }
		arrives := func(when, selector string) {
			t.Helper()
			messages := mx.Wait(t, 1)
			mail := messages[len(messages)-1]
			got := w.selectorOf(t, account, d.ID, mail.Data)
			if got != selector {
				t.Errorf("%s: %v is signed by %s, want %s", when, mail.To, got, selector)
			}
		}

		send()
		round(t, q, 1)
		arrives("before", first)
		defers.Store(true)
		send() // signed by the first key, and deferred
		round(t, q, 1)
		made, err := queue.NewKeys("ann.example")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.RotateKeys(t.Context(), account, d.ID, made[:1]); err != nil {
			t.Fatal(err)
		}
		second := made[0].Selector
		defers.Store(false)
		send()
		round(t, q, 1)
		arrives("while the new key is not published", first)
		w.looksUp(t, account, d.ID, first, second)
		send()
		round(t, q, 1)
		arrives("in the minute in which keys are kept", first)
		w.clock.Add(2 * time.Minute)
		send()
		round(t, q, 2)
		signed := map[string]int{}
		for _, mail := range mx.Wait(t, 5)[3:] {
			signed[w.selectorOf(t, account, d.ID, mail.Data)]++
		}
		if signed[first] != 1 || signed[second] != 1 {
			t.Errorf("the deferred mail and a new one are signed by %v, want one by each of %s and %s", signed, first, second)
		}
		w.clock.Add(store.KeyRetireTTL - 2*time.Minute - time.Second)
		w.looksUp(t, account, d.ID, first, second)
		for _, mail := range mx.Messages() {
			w.selectorOf(t, account, d.ID, mail.Data)
		}
		if len(mx.Messages()) != n {
			t.Errorf("%d messages arrived, want %d", len(mx.Messages()), n)
		}
	})
}

// looksUp has the domain looked up while these selectors are published.
func (w *world) looksUp(t *testing.T, account int64, id string, selectors ...string) {
	t.Helper()
	d, err := w.store.Domain(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	var found []store.DomainRecord
	for _, s := range selectors {
		found = append(found, store.DomainRecord{Kind: "DKIM", Name: s, Required: true, RecordLookup: store.RecordLookup{Status: store.RecordVerified}, Selector: s})
	}
	if _, err := w.store.RecordCheck(t.Context(), d, found, false); err != nil {
		t.Fatal(err)
	}
}

// selectorOf returns the selector of the key that signed a message. The signature
// must verify with the domain's current records.
func (w *world) selectorOf(t *testing.T, account int64, id string, mail []byte) (selector string) {
	t.Helper()
	d, err := w.store.Domain(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	vs, err := dkim.VerifyWithOptions(bytes.NewReader(mail), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		for _, k := range d.Keys {
			if name == k.Selector+"._domainkey."+d.Name {
				selector = k.Selector
				return []string{"v=DKIM1; k=" + k.Algorithm + "; p=" + k.Public}, nil
			}
		}
		return nil, fmt.Errorf("%s is not shown", name)
	}})
	if err != nil || len(vs) != 1 || vs[0].Err != nil {
		t.Fatalf("%d signatures, %v: %+v", len(vs), err, vs)
	}
	return selector
}
