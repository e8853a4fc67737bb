package queue_test

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// wantListed checks why an address of the world's account is not sent to; an
// empty reason means that it is.
func (w *world) wantListed(t *testing.T, email string, want store.SuppressionReason) {
	t.Helper()
	l, err := w.store.ListSuppressions(t.Context(), w.inbox.AccountID, nil, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got store.SuppressionReason
	for _, sup := range l.Rows {
		if sup.EmailFold == email {
			got = sup.Reason
		}
	}
	if got != want {
		t.Errorf("%s is suppressed for %q, want %q", email, got, want)
	}
}

// A permanent failure of the address suppresses it in the transaction that
// records the result; other failures do not (O7).
func TestHardBounceIsSuppressed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		replies := map[string]error{
			"gone@out.example":    smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user"),
			"plain@out.example":   smtptest.Refuse(550, [3]int{}, "no"),
			"policy@out.example":  smtptest.Refuse(550, [3]int{5, 7, 1}, "we do not like you"),
			"system@out.example":  smtptest.Refuse(552, [3]int{5, 3, 4}, "too big"),
			"content@out.example": smtptest.Refuse(554, [3]int{5, 6, 0}, "cannot read this"),
			"sender@out.example":  smtptest.Refuse(550, [3]int{5, 1, 8}, "your domain is wrong"),
			"routing@out.example": smtptest.Refuse(554, [3]int{5, 4, 6}, "a loop"),
			"full@out.example":    smtptest.Refuse(552, [3]int{5, 2, 2}, "over quota"),
			"later@out.example":   smtptest.Refuse(450, [3]int{4, 2, 0}, "later"),
		}
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(to string) error { return replies[strings.ToLower(to)] }})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		m := w.send(t, slices.Collect(maps.Keys(replies))...)
		round(t, q, len(replies))
		w.clock.Add(25 * time.Hour)
		round(t, q, 1)
		for _, r := range w.message(t, m).Recipients {
			if r.Status != store.RecipientBounced {
				t.Errorf("%s is %s", r.Email, r.Status)
			}
		}
		for email, want := range map[string]store.SuppressionReason{
			"gone@out.example": store.SuppressedHardBounce, "plain@out.example": store.SuppressedHardBounce, "policy@out.example": "",
			"system@out.example": "", "content@out.example": "", "later@out.example": "", "sender@out.example": "", "routing@out.example": "",
			"full@out.example": store.SuppressedHardBounce,
		} {
			w.wantListed(t, email, want)
		}
	})
}

// A message accepted before its recipient was suppressed is not sent any more,
// neither as a retry nor on schedule, and no connection is made for it (O7). An
// opt-out from marketing stops only marketing.
func TestSuppressedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		busy := true
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error {
			if busy {
				return smtptest.Refuse(450, [3]int{4, 2, 0}, "later")
			}
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		account, due := w.inbox.AccountID, store.NewTime(start.Add(time.Hour))
		gone, quiet := []string{"Gone@out.example"}, []string{"quiet@out.example"}
		tried := storetest.Email(t, w.store, account, gone)
		scheduled := storetest.Email(t, w.store, account, gone, func(e *store.NewEmail) { e.ScheduledAt = &due })
		marketing := storetest.Email(t, w.store, account, quiet, func(e *store.NewEmail) { e.Category = store.CategoryMarketing })
		other := storetest.Email(t, w.store, account, []string{`"Gone"@out.bücher.example`}, func(e *store.NewEmail) { e.ScheduledAt = &due })
		plain := storetest.Email(t, w.store, account, quiet)
		round(t, q, 3)
		for fold, category := range map[string]store.SuppressionCategory{"gone@out.example": store.SuppressAll, "quiet@out.example": store.SuppressMarketing, "gone@out.xn--bcher-kva.example": store.SuppressAll} {
			_, err := w.store.Suppress(t.Context(), store.Suppression{
				AccountID: account, Email: fold, EmailFold: fold, Reason: store.SuppressedManual, Category: category,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		busy = false
		w.clock.Add(2 * time.Hour)
		w.release(t)
		round(t, q, 5)
		for _, tt := range []struct {
			name string
			of   store.Email
			want store.RecipientStatus
		}{
			{"tried before", tried, store.RecipientSuppressed},
			{"scheduled", scheduled, store.RecipientSuppressed},
			{"another spelling", other, store.RecipientSuppressed},
			{"marketing", marketing, store.RecipientSuppressed},
			{"not marketing", plain, store.RecipientDelivered},
		} {
			e := w.email(t, tt.of)
			wantStatus := store.MessageFailed
			if tt.want == store.RecipientDelivered {
				wantStatus = store.MessageDelivered
			}
			if r := e.Recipients[0]; r.Status != tt.want || e.Status != wantStatus {
				t.Errorf("%s: %s, its recipient %s", tt.name, e.Status, r.Status)
			}
		}
		if messages := mx.Messages(); len(messages) != 1 || messages[0].To[0] != "quiet@out.example" {
			t.Errorf("the server has %+v", messages)
		}
	})
}

// A domain that does not exist, or that has no mail server, may be one that the
// user is still setting up or misspelled once: its addresses are suppressed for
// emails. An inbox may still send to them and reply.
func TestMissingDomainIsSuppressedForEmailsOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		zones := smtptest.Zones{}
		zones["null.example."] = smtptest.Zone{MX: []net.MX{{Host: "."}}}
		q := w.queue(t, 25, zones)
		to := []string{"ann@missing.example", "ann@null.example"}
		statuses := func(rs []store.Recipient) (all []store.RecipientStatus) {
			for _, r := range rs {
				all = append(all, r.Status)
			}
			return all
		}
		e, m := storetest.Email(t, w.store, w.inbox.AccountID, to), storetest.Sent(t, w.store, w.inbox, to)
		round(t, q, 4)
		bounced := []store.RecipientStatus{store.RecipientBounced, store.RecipientBounced}
		if fromInbox, email := statuses(w.message(t, m).Recipients), statuses(w.email(t, e).Recipients); !slices.Equal(fromInbox, bounced) || !slices.Equal(email, bounced) {
			t.Fatalf("the recipients are %s, of the email %s", fromInbox, email)
		}
		for _, address := range to {
			w.wantListed(t, address, store.SuppressedHardBounce)
		}
		if _, err := w.store.EnqueueEmail(t.Context(), storetest.NewEmail(w.inbox.AccountID, to), nil); err == nil {
			t.Error("the next email is accepted")
		}
		m = storetest.Sent(t, w.store, w.inbox, to)
		round(t, q, 2)
		if again := statuses(w.message(t, m).Recipients); !slices.Equal(again, bounced) {
			t.Errorf("the inbox's recipients are %s after the first bounce, want a new attempt", again)
		}
	})
}
