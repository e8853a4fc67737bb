package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// addressNodes opens the database with two nodes on PostgreSQL, and with one on SQLite.
func addressNodes(t *testing.T, cfg store.Config) []*store.Store {
	t.Helper()
	nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
	if nodes[0].Engine() == string(storetest.PostgreSQL) {
		nodes = append(nodes, storetest.OpenConfig(t, cfg))
	}
	return nodes
}

func withAliases(aliases ...string) func(*store.Inbox) {
	return func(in *store.Inbox) { in.Aliases.V = aliases }
}

// Inboxes that change their aliases at the same time wait for each other, but not in a
// circle.
func TestInboxesChangeTheirAliasesAtOnce(t *testing.T) {
	t.Parallel()
	const n = 12
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		nodes := addressNodes(t, cfg)
		before := deadlocks(t, cfg)
		account := storetest.Account(t, nodes[0]).Seq
		mine := func(in *store.Inbox) { in.AccountID = account }
		ins := make([]store.Inbox, n)
		for i := range ins {
			ins[i] = storetest.Inbox(t, nodes[0], mine)
		}
		var calls sync.WaitGroup
		for i, in := range ins {
			s := nodes[i%len(nodes)]
			calls.Go(func() {
				_, err := s.UpdateInbox(t.Context(), account, in.ID, func(in *store.Inbox) error {
					withAliases(fmt.Sprintf("changed%d", i))(in)
					return nil
				})
				if err != nil {
					t.Errorf("change: %v", err)
				}
			})
			calls.Go(func() {
				if _, err := s.CreateInbox(t.Context(), storetest.NewInbox(mine, withAliases(fmt.Sprintf("created%d", i))), nil); err != nil {
					t.Errorf("create: %v", err)
				}
			})
		}
		calls.Wait()
		if got := count(t, cfg, "inbox_addresses"); got != 2*n {
			t.Errorf("%d aliases, want %d", got, 2*n)
		}
		if d := deadlocks(t, cfg) - before; d > 0 {
			t.Errorf("%d deadlocks", d)
		}
	})
}

// Of many inboxes that claim an address at the same time, as their own or as an alias, one
// gets it.
func TestOneInboxGetsAnAddressThatManyClaimAtOnce(t *testing.T) {
	t.Parallel()
	const n = 4
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		nodes := addressNodes(t, cfg)
		account := storetest.Account(t, nodes[0]).Seq
		mine := func(in *store.Inbox) { in.AccountID = account }
		var ins [n]store.Inbox
		for i := range ins {
			ins[i] = storetest.Inbox(t, nodes[0], mine)
		}
		for round := range 5 {
			name := fmt.Sprintf("wanted%d", round)
			claims := []func(s *store.Store, i int) error{
				func(s *store.Store, i int) error {
					_, err := s.UpdateInbox(t.Context(), account, ins[i].ID, func(in *store.Inbox) error { withAliases(name)(in); return nil })
					return err
				},
				func(s *store.Store, _ int) error {
					_, err := s.CreateInbox(t.Context(), storetest.NewInbox(mine, withAliases(name)), nil)
					return err
				},
				func(s *store.Store, _ int) error {
					_, err := s.CreateInbox(t.Context(), storetest.NewInbox(mine, func(in *store.Inbox) { in.Address = name + "@" + storetest.Domain }), nil)
					return err
				},
			}
			errs := make([]error, n*len(claims))
			var calls sync.WaitGroup
			for i := range errs {
				calls.Go(func() { errs[i] = claims[i%len(claims)](nodes[i%len(nodes)], i/len(claims)) })
			}
			calls.Wait()
			got := 0
			for _, err := range errs {
				if err == nil {
					got++
				} else if !errors.Is(err, store.ErrAddressTaken) {
					t.Errorf("got %v, want ErrAddressTaken", err)
				}
			}
			if got != 1 {
				t.Errorf("%d inboxes have %s, want 1", got, name)
			}
		}
	})
}

// An account that claims an alias while another one frees it does not get it.
func TestNobodyGetsAnAliasThatIsBeingFreed(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		nodes := addressNodes(t, cfg)
		s, other := nodes[0], nodes[len(nodes)-1]
		taker := storetest.Account(t, s).Seq
		for round := range 20 {
			name := fmt.Sprintf("passing%d", round)
			in, err := s.CreateInbox(t.Context(), storetest.NewInbox(func(in *store.Inbox) { in.AccountID = storetest.Account(t, s).Seq }, withAliases(name)), nil)
			if err != nil {
				t.Fatal(err)
			}
			errs := make([]error, 4)
			var calls sync.WaitGroup
			calls.Go(func() {
				if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
					t.Errorf("free: %v", err)
				}
			})
			for i := range errs {
				edit := withAliases(name)
				if i%2 == 1 {
					edit = func(in *store.Inbox) { in.Address = name + "@" + storetest.Domain }
				}
				calls.Go(func() {
					_, errs[i] = other.CreateInbox(t.Context(), storetest.NewInbox(func(in *store.Inbox) { in.AccountID = taker }, edit), nil)
				})
			}
			calls.Wait()
			for _, err := range errs {
				if !errors.Is(err, store.ErrAddressTaken) {
					t.Errorf("got %v, want ErrAddressTaken", err)
				}
			}
		}
	})
}
