package store_test

import (
	"errors"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// addEntry adds an entry to the lists of an inbox, or of its account with inbox 0.
func addEntry(t *testing.T, s *store.Store, in store.Inbox, inbox int64, d store.ListDirection, a mail.ListAction, pattern string) store.ListEntry {
	t.Helper()
	e, err := s.CreateListEntry(t.Context(), store.ListEntry{
		AccountID: in.AccountID, InboxSeq: inbox, Direction: d, Action: a, Pattern: pattern, CreatedBy: "key_test",
	}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// from gives a received message a sender that DMARC proves or does not.
func from(email, dmarc string) func(*store.NewMessage) {
	return func(m *store.NewMessage) {
		m.FromEmail = email
		m.Content.Auth = &store.JSON[mail.AuthResult]{V: mail.AuthResult{DMARC: dmarc}}
	}
}

// A message from an allowed sender is deferred while the DNS keeps DMARC from passing. A
// forger cannot cause that with a signature whose key has no working DNS.
func TestAllowedSenderWhoCannotBeAuthenticatedNow(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		addEntry(t, s, in, in.Seq, store.ListInbound, mail.ListAllow, "*@friend.example")
		for _, tt := range []struct {
			from      string
			auth      mail.AuthResult
			temporary bool
		}{
			{"a@friend.example", mail.AuthResult{SPF: "temperror", DKIM: "none", DMARC: "temperror"}, true},
			{"a@friend.example", mail.AuthResult{SPF: "fail", DKIM: "temperror", DMARC: "fail"}, false},
			{"a@friend.example", mail.AuthResult{SPF: "temperror", DKIM: "none", DMARC: "none"}, false},
			{"a@free.example", mail.AuthResult{SPF: "temperror", DKIM: "none", DMARC: "temperror"}, false},
		} {
			m := storetest.NewReceived(in, from(tt.from, ""), func(m *store.NewMessage) { m.Content.Auth.V = tt.auth })
			_, err := s.AddReceived(t.Context(), []*store.NewMessage{m}, nil)
			if listed, ok := errors.AsType[*store.ListError](err); !ok || listed.Temporary != tt.temporary {
				t.Errorf("%s with %+v: %v, want temporary %t", tt.from, tt.auth, err, tt.temporary)
			}
		}
	})
}

// Of calls at once that widen an entry, one reports it.
func TestAWiderSuppressionIsReportedOnce(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		suppress := func(category store.SuppressionCategory) error {
			_, err := s.Suppress(t.Context(), store.Suppression{
				AccountID: in.AccountID, Email: "ann@out.example", EmailFold: "ann@out.example", Reason: store.SuppressedManual, Category: category,
			}, nil)
			return err
		}
		widen := func() error { return suppress(store.SuppressAll) }
		err := errors.Join(suppress(store.SuppressMarketing), atOnce(widen, widen, widen, widen, widen, widen))
		if n := count(t, cfg, "events WHERE type = 'suppression.created'"); n != 2 || err != nil {
			t.Errorf("%d events, %v, want one of the entry and one of what it became", n, err)
		}
	})
}
