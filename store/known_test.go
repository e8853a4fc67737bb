package store_test

import (
	"errors"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// What a store knows from its last messages it forgets when a command of the
// operator, which is another process, changes the database.
func TestMessagesSeeWhatAnotherProcessChanged(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			cfg := storetest.Config(t, e)
			server, command := storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg)
			account := storetest.Account(t, server)
			in := storetest.Inbox(t, server, func(in *store.Inbox) { in.AccountID = account.Seq })
			receive := func(s *store.Store) (int64, error) {
				ms, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
				if err != nil {
					return 0, err
				}
				return ms[0].Seq, nil
			}
			last := int64(0)
			for i, s := range []*store.Store{server, server, command, server, command, command, server} {
				seq, err := receive(s)
				if err != nil || seq <= last {
					t.Fatalf("message %d has the number %d after %d: %v", i, seq, last, err)
				}
				last = seq
			}
			if _, err := command.SuspendInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := receive(server); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a message to a suspended inbox: %v, want ErrNotFound", err)
			}
			if _, err := command.ResumeInbox(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := receive(server); err != nil {
				t.Errorf("a message to an inbox that was resumed: %v", err)
			}
		})
	}
}
