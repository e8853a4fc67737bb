package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestInboxIsReadBackAsStored(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		want := storetest.Inbox(t, s, func(in *store.Inbox) {
			name, expires := "Signup Agent", store.NewTime(begin.Add(time.Hour))
			in.DisplayName, in.ExpiresAt, in.SendPolicy, in.RetentionDays = &name, &expires, store.PolicyApproval, 30
			in.Metadata.V = store.Labels{
				"run": json.RawMessage(`12345678901234567890`), "ok": json.RawMessage(`true`), "none": json.RawMessage(`null`),
				"text": json.RawMessage(`"ä\u0000\"'"`),
			}
		})
		got, err := s.Inbox(t.Context(), want.AccountID, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("created (-) and read (+) differ:\n%s", diff)
		}
		byAddress, err := s.MailboxByAddress(t.Context(), 0, want.Address, "")
		if err != nil || byAddress.ID != want.ID {
			t.Errorf("by address: %s, %v", byAddress.ID, err)
		}
		if got.Status != store.InboxActive || got.LastMessageAt != nil || !got.CreatedAt.Equal(got.UpdatedAt.Time) {
			t.Errorf("a fresh inbox reads %+v", got)
		}
	})
}

func TestInboxOfAnotherAccountIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in, other := storetest.Inbox(t, s), storetest.Account(t, s).Seq
		edit := func(*store.Inbox) error { t.Error("another account may edit"); return nil }
		_, get := s.Inbox(t.Context(), other, in.ID)
		_, update := s.UpdateInbox(t.Context(), other, in.ID, edit)
		_, del := s.DeleteInbox(t.Context(), other, in.ID)
		_, odd := s.Inbox(t.Context(), in.AccountID, "ibx_\x00\xff")
		for what, err := range map[string]error{"get": get, "update": update, "delete": del, "an id that is not text": odd} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", what, err)
			}
		}
	})
}

func TestAddressIsNeverReassigned(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		again := func(account int64) error {
			_, err := s.CreateInbox(t.Context(), storetest.NewInbox(func(n *store.Inbox) { n.AccountID, n.Address = account, in.Address }), nil)
			return err
		}
		other := storetest.Account(t, s).Seq
		for _, account := range []int64{in.AccountID, other} {
			if err := again(account); !errors.Is(err, store.ErrAddressTaken) {
				t.Errorf("in use, account %d: got %v, want ErrAddressTaken", account, err)
			}
		}
		if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
			t.Fatal(err)
		}
		for _, account := range []int64{in.AccountID, other} {
			if err := again(account); !errors.Is(err, store.ErrAddressTaken) {
				t.Errorf("deleted, account %d: got %v, want ErrAddressTaken", account, err)
			}
		}
	})
}

func TestDeletedInboxHidesAllThatIsUnderIt(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		kept := storetest.Inbox(t, s, func(n *store.Inbox) { n.AccountID = in.AccountID })
		m := storetest.Received(t, s, in)
		storetest.Received(t, s, kept)
		wake := s.WakeInbox(in.Seq)
		defer wake.Stop()

		deleted, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		if deleted.Status != store.InboxDeleted || deleted.ID != in.ID {
			t.Errorf("deleted inbox reads %+v", deleted)
		}
		<-wake.C // its waiters hear of it
		ctx := t.Context()
		_, get := s.Inbox(ctx, in.AccountID, in.ID)
		_, byAddress := s.MailboxByAddress(ctx, 0, in.Address, "")
		_, again := s.DeleteInbox(ctx, in.AccountID, in.ID)
		_, update := s.UpdateInbox(ctx, in.AccountID, in.ID, func(*store.Inbox) error { return nil })
		_, message := s.Message(ctx, in.AccountID, m.ID)
		_, first := s.FirstMessage(ctx, store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq})
		_, receive := s.AddReceived(ctx, []*store.NewMessage{storetest.NewReceived(in)}, nil)
		_, send := s.Enqueue(ctx, storetest.NewSent(in, []string{"bob@out.example"}), nil)
		for what, err := range map[string]error{
			"get": get, "by address": byAddress, "delete again": again, "update": update, "message": message,
			"first message": first, "receive": receive, "send": send,
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", what, err)
			}
		}
		inboxes, err := s.ListInboxes(ctx, in.AccountID, store.InboxFilter{}, store.Page{Limit: 10})
		if err != nil || len(inboxes.Rows) != 1 || inboxes.Rows[0].ID != kept.ID {
			t.Errorf("listed inboxes: %v, %v", inboxes.Rows, err)
		}
		all, err := s.ListMessages(ctx, store.MessageFilter{AccountID: in.AccountID}, store.Page{Limit: 10})
		if err != nil || len(all.Rows) != 1 || all.Rows[0].InboxID != kept.ID {
			t.Errorf("listed messages: %v, %v", all.Rows, err)
		}
	})
}

func TestListInboxesPagesNewestFirst(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		mine := func(in *store.Inbox) { in.AccountID = account }
		storetest.Inbox(t, s) // of another account
		var ids []string
		for range 7 {
			ids = append([]string{storetest.Inbox(t, s, mine).ID}, ids...)
		}
		for _, tt := range []struct {
			name    string
			visible []string
			want    []string
		}{
			{"all", nil, ids},
			{"only some are visible", []string{ids[5], ids[0], ids[2], "ibx_none"}, []string{ids[0], ids[2], ids[5]}},
			{"none is visible", []string{}, nil},
		} {
			var got []string
			cursor := ""
			for {
				l, err := s.ListInboxes(t.Context(), account, store.InboxFilter{IDs: tt.visible}, store.Page{Limit: 2, Cursor: cursor})
				if err != nil {
					t.Fatal(err)
				}
				for _, in := range l.Rows {
					got = append(got, in.ID)
				}
				if cursor = l.Cursor; cursor == "" {
					break
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}

func TestListInboxesByAddressAndID(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		mine := func(in *store.Inbox) { in.AccountID = account }
		other, want := storetest.Inbox(t, s, mine), storetest.Inbox(t, s, mine, func(in *store.Inbox) { in.Aliases = store.JSON[[]string]{V: []string{"helpdesk"}} })
		stranger := storetest.Inbox(t, s)
		for _, tt := range []struct {
			name   string
			filter store.InboxFilter
			want   []string
		}{
			{"its address", store.InboxFilter{Address: want.Address}, []string{want.ID}},
			{"its address in capitals", store.InboxFilter{Address: strings.ToUpper(want.Address)}, []string{want.ID}},
			{"an alias", store.InboxFilter{Address: "helpdesk@" + want.Domain}, []string{want.ID}},
			{"an address of another account", store.InboxFilter{Address: stranger.Address}, nil},
			{"an address of none", store.InboxFilter{Address: "%@" + want.Domain}, nil},
			{"a whole id", store.InboxFilter{IDPrefix: want.ID}, []string{want.ID}},
			{"the beginning of all ids", store.InboxFilter{IDPrefix: "ibx_"}, []string{want.ID, other.ID}},
			{"a wildcard", store.InboxFilter{IDPrefix: "ibx%"}, nil},
			{"an id that the key does not see", store.InboxFilter{IDPrefix: want.ID, IDs: []string{other.ID}}, nil},
		} {
			l, err := s.ListInboxes(t.Context(), account, tt.filter, store.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, in := range l.Rows {
				got = append(got, in.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	})
}

func TestUpdateInboxSavesWhatEditChanges(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		name := "Ann"
		got, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
			in.DisplayName, in.SendPolicy, in.RetentionDays = &name, store.PolicyReplyOnly, 3
			in.Metadata.V = store.Labels{"a": json.RawMessage(`"b"`)}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		read, err := s.Inbox(t.Context(), in.AccountID, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, read); diff != "" {
			t.Errorf("returned (-) and read (+) differ:\n%s", diff)
		}
		if *read.DisplayName != name || read.RetentionDays != 3 || string(read.Metadata.V["a"]) != `"b"` {
			t.Errorf("read %+v", read)
		}
		refused := fmt.Errorf("refused: EOF")
		_, err = s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
			in.DisplayName = nil
			return refused
		})
		if err != refused { //nolint:errorlint // as it is means as it is
			t.Errorf("got %v, want the error of edit as it is", err)
		}
		if read, err = s.Inbox(t.Context(), in.AccountID, in.ID); err != nil || read.DisplayName == nil {
			t.Errorf("a refused edit was saved: %+v, %v", read, err)
		}
	}, storetest.WithNow(clock.Now))
}

func TestInboxShowsItsLastMessage(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		storetest.Received(t, s, in)
		last := storetest.Sent(t, s, in, []string{"bob@out.example"})
		got, err := s.Inbox(t.Context(), in.AccountID, in.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.LastMessageAt == nil || !got.LastMessageAt.Equal(last.CreatedAt.Time) {
			t.Errorf("last message at %v, want %v", got.LastMessageAt, last.CreatedAt)
		}
	})
}

// A call may be interrupted at any time, but its result must be true.
func TestResultOfACancelledCallIsTrue(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		for i := range 200 {
			in := storetest.NewInbox(func(in *store.Inbox) { in.AccountID = account })
			ctx, cancel := contextEndingAfter(t, time.Duration(i)*20*time.Microsecond)
			_, created := s.CreateInbox(ctx, in, nil)
			cancel()
			_, there := s.MailboxByAddress(t.Context(), 0, in.Address, "")
			if (created == nil) != (there == nil) {
				t.Fatalf("round %d: got %v, then found %v", i, created, there)
			}
		}
	})
}
