package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

var begin = time.Date(2026, 9, 23, 12, 0, 0, 123_456_789, time.UTC)

func TestKeyIsReadBackAsStored(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a := storetest.Account(t, s)
		want := storetest.Key(t, s, a.Seq, "agent", func(k *store.Key) {
			expires := store.NewTime(begin.Add(time.Hour))
			k.Mode, k.ExpiresAt = store.KeyRestricted, &expires
			k.Scopes.V = []string{"emails:send"}
			k.AllowedIPs.V = []string{"10.0.0.0/8", "2001:db8::/32"}
			k.InboxIDs = &store.JSON[[]string]{V: []string{"ibx_1"}}
		})
		got, err := s.KeyByHash(t.Context(), store.HashKey(storetest.Secret("agent")))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("created (-) and read (+) differ:\n%s", diff)
		}
		if got.LastUsedAt != nil || got.RevokedAt != nil || !got.CreatedAt.Equal(begin.Truncate(time.Millisecond)) {
			t.Errorf("times of a fresh key: %+v", got)
		}
	}, storetest.WithNow(func() time.Time { return begin }))
}

func TestKeyEndsWhenItExpires(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		at := store.NewTime(begin.Add(time.Hour))
		storetest.Key(t, s, storetest.Account(t, s).Seq, "short", func(k *store.Key) { k.ExpiresAt = &at })
		hash := store.HashKey(storetest.Secret("short"))
		if _, err := s.KeyByHash(t.Context(), hash); err != nil {
			t.Errorf("before it expires: %v", err)
		}
	}, storetest.WithNow(clock.Now))
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		at := store.NewTime(begin)
		storetest.Key(t, s, storetest.Account(t, s).Seq, "over", func(k *store.Key) { k.ExpiresAt = &at })
		if _, err := s.KeyByHash(t.Context(), store.HashKey(storetest.Secret("over"))); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("at the moment it expires: got %v, want ErrNotFound", err)
		}
	}, storetest.WithNow(clock.Now))
}

func TestRevokedKeyIsGone(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, other := storetest.Account(t, s), storetest.Account(t, s)
		k := storetest.Key(t, s, a.Seq, "agent")
		if err := s.RevokeKey(t.Context(), other.Seq, k.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoked by another account: got %v, want ErrNotFound", err)
		}
		if err := s.RevokeKey(t.Context(), a.Seq, k.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeKey(t.Context(), a.Seq, k.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoked twice: got %v, want ErrNotFound", err)
		}
		if _, err := s.KeyByHash(t.Context(), k.Hash); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("looked up: got %v, want ErrNotFound", err)
		}
		l, err := s.ListKeys(t.Context(), a.Seq, nil, store.Page{Limit: 10})
		if err != nil || len(l.Rows) != 0 {
			t.Errorf("listed: %v, %v", l.Rows, err)
		}
	})
}

func TestListKeysPagesNewestFirst(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a := storetest.Account(t, s)
		storetest.Key(t, s, storetest.Account(t, s).Seq, "of another account")
		for i := range 5 {
			storetest.Key(t, s, a.Seq, fmt.Sprint(i))
		}
		var names []string
		cursor := ""
		for {
			l, err := s.ListKeys(t.Context(), a.Seq, nil, store.Page{Limit: 2, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range l.Rows {
				names = append(names, k.Name)
			}
			if cursor = l.Cursor; cursor == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"4", "3", "2", "1", "0"}, names); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
	})
}

func TestKeySecretIsNotStored(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		storetest.Key(t, s, storetest.Account(t, s).Seq, "confidential")
		wantNotStored(t, cfg, storetest.Secret("confidential"))
	})
}
