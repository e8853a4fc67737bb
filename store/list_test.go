package store_test

import (
	"errors"
	"testing"
	"time"

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

func TestOutboundListsDecideAboutRecipients(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in, other := storetest.Inbox(t, s), storetest.Inbox(t, s)
		send := func(from store.Inbox, to string) error {
			_, err := s.Enqueue(t.Context(), storetest.NewSent(from, []string{to}), nil)
			return err
		}
		want := func(from store.Inbox, to string, refused, approval bool) {
			t.Helper()
			err := send(from, to)
			listed, ok := errors.AsType[*store.ListError](err)
			switch {
			case !refused && err != nil:
				t.Errorf("%s: %v", to, err)
			case refused && (!ok || listed.Approval != approval || listed.Param != "to[0]"):
				t.Errorf("%s: got %v", to, err)
			}
		}
		want(in, "a@blocked.example", false, false)
		addEntry(t, s, in, in.Seq, store.ListOutbound, mail.ListBlock, "*@blocked.example")
		want(in, "a@blocked.example", true, false)
		want(other, "a@blocked.example", false, false)
		addEntry(t, s, in, 0, store.ListOutbound, mail.ListApprove, "*@*.asked.example")
		want(in, "a@x.asked.example", true, true)
		want(in, "a@asked.example", false, false)
		open := addEntry(t, s, in, in.Seq, store.ListOutbound, mail.ListAllow, "boss@blocked.example")
		want(in, "boss@blocked.example", false, false)
		want(in, "b@free.example", true, false)
		want(in, "b@free.example", true, false)
		if err := s.DeleteListEntry(t.Context(), in.AccountID, nil, open.ID); err != nil {
			t.Fatal(err)
		}
		want(in, "boss@blocked.example", true, false)
		want(in, "b@free.example", false, false)
	})
}

// What would let more mail pass needs leave to do so.
func TestListEntriesThatLoosen(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		there   []string // action and pattern
		add     string
		loosens bool
	}{
		{"the first that allows", nil, "allow a@x.example", false},
		{"the second that allows", []string{"allow a@x.example"}, "allow b@x.example", true},
		{"an address of an allowed domain", []string{"allow *@x.example"}, "allow b@x.example", false},
		{"out of a block", []string{"block *@x.example"}, "allow b@x.example", true},
		{"approval out of a block", []string{"block *@x.example"}, "approve b@x.example", true},
		{"approval out of an allow list", []string{"allow *@y.example"}, "approve b@x.example", true},
		{"approval within an allow list", []string{"allow *@x.example"}, "approve b@x.example", false},
		{"allow within approval", []string{"approve *@*.example"}, "allow b@x.example", true},
		{"allow beside a block", []string{"block b@x.example"}, "allow b@x.example", false},
		{"a block", []string{"allow b@x.example"}, "block b@x.example", false},
		{"a wide block", []string{"approve b@x.example"}, "block *@x.example", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, s *store.Store) {
				in := storetest.Inbox(t, s)
				create := func(text string, mayLoosen bool) error {
					action, pattern := text[:len(text)-len(afterSpace(text))-1], afterSpace(text)
					_, err := s.CreateListEntry(t.Context(), store.ListEntry{
						AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.ListOutbound, Action: mail.ListAction(action), Pattern: pattern, CreatedBy: "k",
					}, mayLoosen, nil)
					return err
				}
				for _, e := range tt.there {
					if err := create(e, true); err != nil {
						t.Fatal(err)
					}
				}
				if err := create(tt.add, false); errors.Is(err, store.ErrLoosens) != tt.loosens {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func afterSpace(text string) string {
	for i := range text {
		if text[i] == ' ' {
			return text[i+1:]
		}
	}
	return ""
}

// A scheduled email is checked by the lists of the moment when it is due.
func TestListsHoldForScheduledEmailsWhenDue(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		at := store.NewTime(clock.Now().Add(time.Hour))
		blocked := storetest.NewEmail(in.AccountID, []string{"a@blocked.example"})
		blocked.ScheduledAt = &at
		free := storetest.NewEmail(in.AccountID, []string{"a@free.example"})
		free.ScheduledAt = &at
		one, err := s.EnqueueEmail(t.Context(), blocked, nil)
		if err != nil {
			t.Fatal(err)
		}
		two, err := s.EnqueueEmail(t.Context(), free, nil)
		if err != nil {
			t.Fatal(err)
		}
		addEntry(t, s, in, 0, store.ListOutbound, mail.ListBlock, "*@blocked.example")
		clock.Add(2 * time.Hour)
		if _, err := s.ReleaseScheduled(t.Context(), dueRules); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]store.MessageStatus{one.ID: store.MessageFailed, two.ID: store.MessageQueued} {
			e, err := s.Email(t.Context(), in.AccountID, nil, id)
			if err != nil || e.Status != want {
				t.Errorf("%s: %s, %v, want %s", id, e.Status, err, want)
			}
		}
	})
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

func TestInboundListsAndQuarantine(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		receive := func(email, dmarc string) (store.Message, error) {
			ms, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in, from(email, dmarc))}, nil)
			if err != nil {
				return store.Message{}, err
			}
			return ms[0], nil
		}
		refused := func(email, dmarc string) {
			t.Helper()
			if _, err := receive(email, dmarc); !errors.As(err, new(*store.ListError)) {
				t.Errorf("%s: %v", email, err)
			}
		}
		addEntry(t, s, in, in.Seq, store.ListInbound, mail.ListBlock, "*@blocked.example")
		addEntry(t, s, in, 0, store.ListInbound, mail.ListApprove, "*@asked.example")
		refused("A@Blocked.example", "pass")
		refused("a@blocked.example", "fail")
		if m, err := receive("a@free.example", "none"); err != nil || m.Status != store.MessageReceived {
			t.Fatalf("%s, %v", m.Status, err)
		}
		held, err := receive("a@asked.example", "pass")
		if err != nil || held.Status != store.MessageQuarantined {
			t.Fatalf("%s, %v", held.Status, err)
		}
		count := func(f store.MessageFilter) int {
			t.Helper()
			f.AccountID, f.InboxSeq = in.AccountID, in.Seq
			l, err := s.ListMessages(t.Context(), f, store.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return len(l.Rows)
		}
		threads := func() int {
			t.Helper()
			l, err := s.ListThreads(t.Context(), in, store.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return len(l.Rows)
		}
		written := func() int {
			t.Helper()
			found, err := s.HaveWritten(t.Context(), in.Seq, []string{"a@asked.example"}, true)
			if err != nil {
				t.Fatal(err)
			}
			return len(found)
		}
		if n, q, th, w := count(store.MessageFilter{}), count(store.MessageFilter{Status: store.MessageQuarantined, FromLike: "a@asked.example"}), threads(), written(); n != 1 || q != 1 || th != 1 || w != 0 {
			t.Errorf("%d listed, %d in quarantine, %d threads, %d have written", n, q, th, w)
		}
		if _, err := s.Message(t.Context(), in.AccountID, held.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the message in quarantine: %v", err)
		}
		m, err := s.AnyMessage(t.Context(), in.AccountID, held.ID)
		if err != nil {
			t.Fatal(err)
		}
		if m, err = s.ReleaseMessage(t.Context(), m, func(*store.NewMessage) {}); err != nil || m.ID != held.ID {
			t.Fatalf("%s, %v", m.ID, err)
		}
		if n, q, th, w := count(store.MessageFilter{}), count(store.MessageFilter{Status: store.MessageQuarantined}), threads(), written(); n != 2 || q != 0 || th != 2 || w != 1 {
			t.Errorf("after release: %d listed, %d in quarantine, %d threads, %d have written", n, q, th, w)
		}
		m.Status = store.MessageQuarantined
		if _, err := s.ReleaseMessage(t.Context(), m, func(*store.NewMessage) {}); err == nil {
			t.Error("released twice")
		}
		addEntry(t, s, in, in.Seq, store.ListInbound, mail.ListAllow, "*@friend.example")
		refused("a@friend.example", "fail")
		refused("a@free.example", "pass")
		if m, err := receive("a@friend.example", "pass"); err != nil || m.Status != store.MessageReceived {
			t.Errorf("%s, %v", m.Status, err)
		}
	})
}
