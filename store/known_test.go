package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Every change of an inbox, by this process or another, shows at once in the lookup of
// its address.
func TestMailboxByAddressSeesWhatChanged(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			cfg := storetest.Config(t, e)
			server, command := storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg)
			in := storetest.Inbox(t, server)
			check := func(when string, want store.InboxStatus) {
				t.Helper()
				if m, err := server.MailboxByAddress(t.Context(), 0, in.Address, ""); err != nil || m.Status != want || m.Seq != in.Seq {
					t.Errorf("%s: %+v, %v, want %s", when, m, err, want)
				}
			}
			check("new", store.InboxActive)
			if _, err := server.SuspendInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			check("suspended", store.InboxSuspended)
			if _, err := server.ResumeInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			check("resumed", store.InboxActive)
			expires := store.NewTime(time.Now().Add(time.Hour))
			_, err := server.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error {
				in.ExpiresAt = &expires
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if m, err := server.MailboxByAddress(t.Context(), 0, in.Address, ""); err != nil || m.ExpiresAt == nil {
				t.Errorf("with an expiry: %+v, %v", m, err)
			}
			check("with an expiry", store.InboxActive)
			if _, err := command.SuspendInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			check("suspended by another process", store.InboxSuspended)
			if _, err := server.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a message to a suspended inbox: %v, want ErrNotFound", err)
			}
			if _, err := command.ResumeInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			check("resumed by another process", store.InboxActive)
			if _, err := server.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
				t.Fatal(err)
			}
			if m, err := server.MailboxByAddress(t.Context(), 0, in.Address, ""); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("deleted: %+v, %v, want ErrNotFound", m, err)
			}
		})
	}
}
