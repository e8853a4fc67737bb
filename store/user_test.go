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
	u, err := s.CreateUser(t.Context(), storetest.Account(t, s).Seq, name, newLink(clock, name))
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

func TestNamesOfUsersAreTakenUntilTheyAreRemoved(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		person(t, s, clock, "ann")
		other := storetest.Account(t, s).Seq
		if _, err := s.CreateUser(t.Context(), other, "Ann", newLink(clock, "x")); !errors.Is(err, store.ErrNameTaken) {
			t.Errorf("a name in use: %v, want ErrNameTaken", err)
		}
		_, err := s.LinkUser(t.Context(), store.HashKey("x"))
		wantNotFound(t, "the link of who was not made", err)
		if _, err := s.RemoveUser(t.Context(), "Ann"); err != nil {
			t.Fatal(err)
		}
		_, err = s.RemoveUser(t.Context(), "ann")
		wantNotFound(t, "removing twice", err)
		if _, err := s.CreateUser(t.Context(), other, "ann", newLink(clock, "x")); err != nil {
			t.Errorf("the name of one who was removed: %v", err)
		}
		l, err := s.ListUsers(t.Context(), other, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 1 {
			t.Errorf("users of the account: %+v, %v", l, err)
		}
	})
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

func TestNoSessionForWhoWasReset(t *testing.T) {
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
		wantNotFound(t, "a session by the password before", s.StartSession(t.Context(), u, store.HashKey("late")))
		if err := s.StartSession(t.Context(), now, store.HashKey("in time")); err != nil {
			t.Errorf("a session by the password now: %v", err)
		}
	})
}

func TestBootstrapMakesTheFirstUser(t *testing.T) {
	t.Parallel()
	eachUser(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		a, _, err := s.Bootstrap(t.Context(), "home", firstKey("secret"), &store.FirstUser{Name: "admin", Link: newLink(clock, "x")})
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.LinkUser(t.Context(), store.HashKey("x"))
		if err != nil || u.Name != "admin" || u.AccountID != a.Seq {
			t.Errorf("the user of the link: %+v, %v", u, err)
		}
	})
}
