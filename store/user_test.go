package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// person is a user with a one-time link and a session, by the names of those.
func person(t *testing.T, s *store.Store, clock *storetest.Clock, name string) store.User {
	t.Helper()
	u, err := s.CreateUser(t.Context(), storetest.Account(t, s).Seq, name, store.RoleAdmin, newLink(clock, name))
	if err == nil {
		u, err = s.UseLink(t.Context(), store.HashKey(name), "hash of a password", store.HashKey(name+"'s session"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func newLink(clock *storetest.Clock, token string) store.UserLink {
	return store.UserLink{Hash: store.HashKey(token), ExpiresAt: clock.Now().Add(time.Hour)}
}

// eachUser runs test on both engines with a clock.
func eachUser(t *testing.T, test func(t *testing.T, s *store.Store, clock *storetest.Clock)) {
	t.Helper()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC))
		cfg.Now = clock.Now
		test(t, storetest.OpenConfig(t, cfg), clock)
	})
}

func wantNotFound(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%s: got %v, want ErrNotFound", what, err)
	}
}

// H3, for people: what a user is signed in to ends at once.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	ends := []struct {
		how string
		end func(t *testing.T, s *store.Store, clock *storetest.Clock) error
	}{
		{"by signing out", func(t *testing.T, s *store.Store, _ *storetest.Clock) error {
			return s.EndSession(t.Context(), store.HashKey("ann's session"))
		}},
		{"when the user is removed", func(t *testing.T, s *store.Store, _ *storetest.Clock) error {
			_, err := s.RemoveUser(t.Context(), "ann")
			return err
		}},
		{"when the user is reset", func(t *testing.T, s *store.Store, clock *storetest.Clock) error {
			_, err := s.ResetUser(t.Context(), "ann", newLink(clock, "x"))
			return err
		}},
		{"when not used for long", func(_ *testing.T, _ *store.Store, clock *storetest.Clock) error {
			clock.Add(store.SessionIdleTTL)
			return nil
		}},
		{"in the end, however much it is used", func(t *testing.T, s *store.Store, clock *storetest.Clock) error {
			for range store.SessionTTL / (24 * time.Hour) {
				if _, err := s.SessionUser(t.Context(), store.HashKey("ann's session")); err != nil {
					return err
				}
				clock.Add(24 * time.Hour)
			}
			return nil
		}},
	}
	for _, tt := range ends {
		t.Run(tt.how, func(t *testing.T) {
			t.Parallel()
			eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
				u := person(t, s, clock, "ann")
				if got, err := s.SessionUser(t.Context(), store.HashKey("ann's session")); err != nil || got.ID != u.ID {
					t.Fatalf("before: %+v, %v", got, err)
				}
				if err := tt.end(t, s, clock); err != nil {
					t.Fatal(err)
				}
				_, err := s.SessionUser(t.Context(), store.HashKey("ann's session"))
				wantNotFound(t, "afterwards", err)
			})
		})
	}
}

func TestPasswordBeforeAResetOpensNoSession(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		u := person(t, s, clock, "ann")
		if _, err := s.ResetUser(t.Context(), "ann", newLink(clock, "x")); err != nil {
			t.Fatal(err)
		}
		wantNotFound(t, "a session after the reset", s.StartSession(t.Context(), u, store.HashKey("late")))
		now, err := s.UseLink(t.Context(), store.HashKey("x"), "hash of another password", store.HashKey("new"))
		if err != nil {
			t.Fatal(err)
		}
		wantNotFound(t, "a session with the previous password", s.StartSession(t.Context(), u, store.HashKey("late")))
		if err := s.StartSession(t.Context(), now, store.HashKey("in time")); err != nil {
			t.Errorf("a session with the new password: %v", err)
		}
	})
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		role, other store.Role
		want        bool
	}{
		{store.RoleAdmin, store.RoleViewer, true}, {store.RoleAdmin, store.RoleAdmin, true}, {store.RoleApprover, store.RoleAdmin, false},
		{store.RoleApprover, store.RoleViewer, true}, {store.RoleViewer, store.RoleApprover, false}, {"", store.RoleViewer, false},
	} {
		if got := tt.role.Includes(tt.other); got != tt.want {
			t.Errorf("%q includes %q: %t", tt.role, tt.other, got)
		}
	}
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		u, err := s.CreateUser(t.Context(), account, "ann", store.RoleViewer, store.UserLink{Hash: []byte("x"), ExpiresAt: s.Now().Add(time.Hour)})
		if err != nil || u.Role != store.RoleViewer {
			t.Fatalf("%+v, %v", u, err)
		}
		if err := s.SetRole(t.Context(), account+1, u.ID, store.RoleAdmin); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another account changes the role: %v", err)
		}
		if err := s.SetRole(t.Context(), account, u.ID, "owner"); err == nil {
			t.Error("a role that does not exist is stored")
		}
		if err := s.SetRole(t.Context(), account, u.ID, store.RoleApprover); err != nil {
			t.Error(err)
		}
		if u, err = s.User(t.Context(), account, u.ID); err != nil || u.Role != store.RoleApprover {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// A change of the password ends the other sessions and the links, and needs the
// password that is kept.
func TestChangePassword(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		link := func(hash string) store.UserLink {
			return store.UserLink{Hash: []byte(hash), ExpiresAt: s.Now().Add(time.Hour)}
		}
		u, err := s.CreateUser(t.Context(), storetest.Account(t, s).Seq, "ann", store.RoleAdmin, link("x"))
		if err == nil {
			u, err = s.UseLink(t.Context(), []byte("x"), "old", []byte("here"))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range []string{"there", "elsewhere"} {
			if err := s.StartSession(t.Context(), u, []byte(session)); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := s.Sessions(t.Context(), u.Seq, 10); err != nil || len(all) != 3 {
			t.Errorf("%d sessions, %v, want 3", len(all), err)
		}
		if err := s.ChangePassword(t.Context(), u, "new", []byte("here")); err != nil {
			t.Fatal(err)
		}
		if all, err := s.Sessions(t.Context(), u.Seq, 10); err != nil || len(all) != 1 || string(all[0].Hash) != "here" {
			t.Errorf("sessions %v, %v, want here", all, err)
		}
		if err := s.ChangePassword(t.Context(), u, "newer", []byte("here")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("changed with the old password: %v", err)
		}
		if n, err := s.EndOtherSessions(t.Context(), u.Seq, []byte("none")); n != 1 || err != nil {
			t.Errorf("ended %d, %v, want 1", n, err)
		}
	})
}

func TestLinkSetsAPasswordOnce(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		u := person(t, s, clock, "Ann")
		if u.Name != "ann" || u.Password == nil || *u.Password != "hash of a password" {
			t.Errorf("after the link: %+v", u)
		}
		got, err := s.UserByName(t.Context(), "ANN")
		if err != nil || got.ID != u.ID {
			t.Errorf("by name: %+v, %v", got, err)
		}
		_, err = s.UseLink(t.Context(), store.HashKey("Ann"), "another", store.HashKey("x"))
		wantNotFound(t, "the link again", err)
		if _, err := s.ResetUser(t.Context(), "ann", newLink(clock, "second")); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
		_, err = s.LinkUser(t.Context(), store.HashKey("second"))
		wantNotFound(t, "a link that has ended", err)
		_, err = s.UseLink(t.Context(), store.HashKey("second"), "another", store.HashKey("x"))
		wantNotFound(t, "using a link that has ended", err)
	})
}
