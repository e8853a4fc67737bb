package inbound

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// verifiedDomain returns an account's domain.
func verifiedDomain(t *testing.T, s *store.Store, account int64, name string) store.Domain {
	t.Helper()
	d, err := s.CreateDomain(t.Context(), store.Domain{AccountID: account, Name: name, Token: "t"}, nil, nil)
	if err == nil {
		d, err = s.RecordCheck(t.Context(), d, nil, true)
	}
	if err != nil || d.Status != store.DomainVerified {
		t.Fatalf("domain %s: %s, %v", name, d.Status, err)
	}
	return d
}

// An inbox with the address comes first, then one with the alias, then the catch-all
// inbox of the domain or of the nearest one above it.
func TestResolve(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		r := newReceiver(t, s, func(c *ReceiverConfig) { c.Now = clock.Now })
		one, two := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		verifiedDomain(t, s, one, "one.example")
		verifiedDomain(t, s, one, "own.one.example")
		verifiedDomain(t, s, two, "two.one.example")
		create := func(account int64, name, domain string, edits ...func(*store.Inbox)) store.Inbox {
			t.Helper()
			in, err := s.CreateInbox(t.Context(), storetest.NewInbox(append(edits, func(in *store.Inbox) {
				in.AccountID, in.Name, in.Domain, in.Address, in.OnOwnDomain = account, name, domain, name+"@"+domain, domain != "in.example"
			})...), nil)
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		aliases := func(names ...string) func(*store.Inbox) {
			return func(in *store.Inbox) { in.Aliases.V = names }
		}
		ends := func(after time.Duration) func(*store.Inbox) {
			return func(in *store.Inbox) { in.ExpiresAt = new(store.NewTime(clock.Now().Add(after))) }
		}
		catchAll := func(in *store.Inbox) { in.CatchAll = true }
		inboxes := map[string]store.Inbox{
			"shared": create(one, "shared", "in.example", aliases("sales")),
			"bot":    create(one, "bot", "one.example", aliases("orders", "info")),
			"all":    create(one, "all", "one.example", catchAll),
			"theirs": create(two, "all", "two.one.example", catchAll),
			"old":    create(one, "old", "in.example", ends(0)),
			"young":  create(one, "young", "in.example", ends(time.Second)),
			"gone":   create(one, "gone", "one.example", aliases("freed")),
		}
		if _, err := s.DeleteInbox(t.Context(), one, inboxes["gone"].ID); err != nil {
			t.Fatal(err)
		}
		check := func(rcpt, inbox, tag string, want error) {
			t.Helper()
			in, got, err := r.Resolve(t.Context(), rcpt)
			switch {
			case !errors.Is(err, want):
				t.Errorf("%s: %v, want %v", rcpt, err, want)
			case err == nil && in.ID != inboxes[inbox].ID:
				t.Errorf("%s reaches %s, want %s (%s)", rcpt, in.ID, inbox, inboxes[inbox].ID)
			case err == nil && (got != nil) != (tag != "") || got != nil && *got != tag:
				t.Errorf("%s has the tag %v, want %q", rcpt, got, tag)
			}
		}
		for _, tt := range []struct {
			rcpt, inbox, tag string
			want             error
		}{
			{"Sales@in.example", "shared", "", nil},
			{"sales+x@in.example", "shared", "x", nil},
			{"other@in.example", "", "", replyNoInbox},
			{"x@sub.in.example", "", "", replyRelayDenied},
			{"old@in.example", "", "", replyInboxClosed},
			{"young@in.example", "young", "", nil},
			{strings.Repeat("x", 250) + "@in.example", "", "", replyBadRecipient},
			{"bot@one.example", "bot", "", nil},
			{"ORDERS+2026@One.example", "bot", "2026", nil},
			{"info@one.example", "bot", "", nil},
			{"any.thing+t@one.example", "all", "t", nil},
			{"freed@one.example", "all", "", nil},
			{"gone@one.example", "", "", replyNoInbox},
			{"postmaster@one.example", "", "", replyNoInbox},
			{"Abuse+x@one.example", "", "", replyNoInbox},
			{"bounce+x@one.example", "", "", replyNoInbox},
			{"x@shop.one.example", "all", "", nil},
			{"x@a.b.shop.one.example", "all", "", nil},
			{"admin@shop.one.example", "", "", replyRelayDenied},
			{"orders@shop.one.example", "all", "", nil},
			{"x@own.one.example", "", "", replyNoInbox},
			{"x@a.own.one.example", "", "", replyRelayDenied},
			{"x@two.one.example", "theirs", "", nil},
			{"x@a.two.one.example", "theirs", "", nil},
			{"x@notone.example", "", "", replyRelayDenied},
			{"x@example", "", "", replyRelayDenied},
		} {
			check(tt.rcpt, tt.inbox, tt.tag, tt.want)
			check(tt.rcpt, tt.inbox, tt.tag, tt.want) // remembered
		}
		created := create(one, "freed", "one.example")
		inboxes["freed"] = created
		check("freed@one.example", "freed", "", nil)

		raw := r.NewSpool()
		defer func() { _ = raw.Close() }()
		if _, err := raw.Write([]byte("From: a@out.example\r\nTo: list@out.example\r\nSubject: s\r\n\r\nt\r\n")); err != nil {
			t.Fatal(err)
		}
		stored, err := r.Receive(t.Context(), smtp.Envelope{
			MailFrom: "a@out.example", RemoteAddr: "192.0.2.1", RcptTo: []string{"Orders+Q1@One.EXAMPLE", "bot@one.example", "Random@shop.one.example"},
		}, raw)
		if err != nil || len(stored) != 2 {
			t.Fatalf("%d messages, %v, want 2", len(stored), err)
		}
		for i, want := range []string{"orders+q1@one.example", "random@shop.one.example"} {
			m, err := s.Message(t.Context(), one, stored[i].ID)
			if err != nil || m.DeliveredTo == nil || *m.DeliveredTo != want {
				t.Errorf("message %d: delivered to %v, %v, want %s", i, m.DeliveredTo, err, want)
			}
		}
	})
}
