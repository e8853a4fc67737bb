package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const operation = "POST /v1/inboxes"

func once(account int64, key string) *store.Once {
	return &store.Once{
		AccountID: account, Operation: operation, Key: key, BodyHash: []byte("hash"),
		Render: func(row any) (store.CachedResponse, error) {
			body, err := json.Marshal(row)
			return store.CachedResponse{BodyHash: []byte("hash"), Status: 201, Kind: fmt.Sprintf("%T", row), Body: body}, err
		},
	}
}

// twenty runs do 20 times at once on all stores and returns the result of the one
// call that succeeds; the others must report that they were too late.
func twenty(t *testing.T, stores []*store.Store, do func(*store.Store) (string, error)) string {
	t.Helper()
	var calls sync.WaitGroup
	ids, errs := make([]string, 20), make([]error, 20)
	for i := range ids {
		calls.Go(func() { ids[i], errs[i] = do(stores[i%len(stores)]) })
	}
	calls.Wait()
	id := ""
	for i, err := range errs {
		switch {
		case err == nil && id != "":
			t.Error("two calls did the work")
		case err == nil:
			id = ids[i]
		case !errors.Is(err, store.ErrIdempotencyRaced):
			t.Errorf("got %v, want ErrIdempotencyRaced", err)
		}
	}
	if id == "" {
		t.Error("no call did the work")
	}
	return id
}

func TestOneKeyIsOneEffect(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		stores := []*store.Store{storetest.OpenConfig(t, cfg)}
		s := stores[0]
		if s.Engine() == string(storetest.PostgreSQL) {
			stores = append(stores, storetest.OpenConfig(t, cfg))
		}
		account := storetest.Account(t, s).Seq
		create := func(key string, in func() store.Inbox) func(*store.Store) (string, error) {
			return func(s *store.Store) (string, error) {
				n := in()
				n.AccountID = account
				made, err := s.CreateInbox(t.Context(), n, once(account, key))
				return made.ID, err
			}
		}
		named := storetest.NewInbox()
		for key, in := range map[string]func() store.Inbox{
			"random": func() store.Inbox { return storetest.NewInbox() },
			"named":  func() store.Inbox { return named },
		} {
			id := twenty(t, stores, create(key, in))
			cached, err := s.CachedResponse(t.Context(), account, operation, key)
			if err != nil {
				t.Fatal(err)
			}
			var stored store.Inbox
			if err := json.Unmarshal(cached.Body, &stored); err != nil || stored.ID != id || cached.Status != 201 {
				t.Errorf("%s: the cached response is %+v, %v, want %s", key, cached, err, id)
			}
		}
		if n := count(t, cfg, "inboxes"); n != 2 {
			t.Errorf("%d inboxes, want 2", n)
		}

		in := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
		id := twenty(t, stores, func(s *store.Store) (string, error) {
			m, err := s.Enqueue(t.Context(), storetest.NewSent(in, []string{"bob@out.example"}), once(account, "send"))
			return m.ID, err
		})
		for table, want := range map[string]int{"messages": 1, "recipients": 1, "events": 1, "contents": 1} {
			if n := count(t, cfg, table); n != want {
				t.Errorf("%s holds %d rows, want %d", table, n, want)
			}
		}
		cached, err := s.CachedResponse(t.Context(), account, operation, "send")
		if err != nil {
			t.Fatal(err)
		}
		var stored store.Message
		if err := json.Unmarshal(cached.Body, &stored); err != nil || stored.ID != id || stored.ThreadID == "" || stored.CreatedAt.IsZero() {
			t.Errorf("the cached response is %+v, %v, want %s", stored, err, id)
		}
	})
}

func TestCachedResponseBelongsToAccountOperationAndKey(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, b := storetest.Account(t, s).Seq, storetest.Account(t, s).Seq
		in := storetest.NewInbox(func(in *store.Inbox) { in.AccountID = a })
		if _, err := s.CreateInbox(t.Context(), in, once(a, "key")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.CachedResponse(t.Context(), a, operation, "key"); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			account        int64
			operation, key string
		}{{b, operation, "key"}, {a, "POST /v1/emails", "key"}, {a, operation, "KEY"}} {
			if _, err := s.CachedResponse(t.Context(), tt.account, tt.operation, tt.key); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%+v: got %v, want ErrNotFound", tt, err)
			}
		}
	})
}

func TestCachedResponseExpiresAfterADay(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		account := storetest.Account(t, s).Seq
		create := func() (store.Inbox, error) {
			return s.CreateInbox(t.Context(), storetest.NewInbox(func(in *store.Inbox) { in.AccountID = account }), once(account, "key"))
		}
		if _, err := create(); err != nil {
			t.Fatal(err)
		}
		clock.Add(store.CachedResponseTTL - time.Millisecond)
		if _, err := create(); !errors.Is(err, store.ErrIdempotencyRaced) {
			t.Errorf("within the day: got %v, want ErrIdempotencyRaced", err)
		}
		if n, err := s.SweepCachedResponses(t.Context()); n != 0 || err != nil {
			t.Errorf("swept %d, %v, want none", n, err)
		}
		clock.Add(time.Millisecond)
		if _, err := s.CachedResponse(t.Context(), account, operation, "key"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after a day: got %v, want ErrNotFound", err)
		}
		second, err := create()
		if err != nil {
			t.Fatal(err)
		}
		cached, err := s.CachedResponse(t.Context(), account, operation, "key")
		if err != nil {
			t.Fatal(err)
		}
		var stored store.Inbox
		if err := json.Unmarshal(cached.Body, &stored); err != nil || stored.ID != second.ID {
			t.Errorf("the response was not replaced: %s, want %s", stored.ID, second.ID)
		}
		clock.Add(store.CachedResponseTTL)
		if n, err := s.SweepCachedResponses(t.Context()); n != 1 || err != nil {
			t.Errorf("swept %d, %v, want 1", n, err)
		}
	})
}

func TestRefusedCallCachesNoResponse(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		taken := storetest.NewInbox(func(n *store.Inbox) { n.AccountID, n.Address = in.AccountID, in.Address })
		if _, err := s.CreateInbox(t.Context(), taken, once(in.AccountID, "key")); !errors.Is(err, store.ErrAddressTaken) {
			t.Fatalf("got %v, want ErrAddressTaken", err)
		}
		broken := once(in.AccountID, "key")
		failed := errors.New("cannot render")
		broken.Render = func(any) (store.CachedResponse, error) { return store.CachedResponse{}, failed }
		if _, err := s.Enqueue(t.Context(), storetest.NewSent(in, []string{"bob@out.example"}), broken); !errors.Is(err, failed) {
			t.Errorf("got %v, want the error of Render", err)
		}
		if _, err := s.CachedResponse(t.Context(), in.AccountID, operation, "key"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if ms := every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 10); len(ms) != 0 {
			t.Errorf("stored %v without the cached response", subjects(ms))
		}
	})
}

// Cached responses about mail are deleted with the inbox.
func TestDeletedInboxDeletesItsCachedResponses(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		account := storetest.Account(t, s).Seq
		create := func(key string) store.Inbox {
			in, err := s.CreateInbox(t.Context(), storetest.NewInbox(func(in *store.Inbox) { in.AccountID = account }), once(account, key))
			if err != nil {
				t.Fatal(err)
			}
			return in
		}
		in := create("deleted")
		create("kept")
		if _, err := s.Enqueue(t.Context(), storetest.NewSent(in, []string{"bob@out.example"}), once(account, "sent")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteInbox(t.Context(), account, in.ID); err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, key := range []string{"deleted", "kept", "sent"} {
			if _, err := s.CachedResponse(t.Context(), account, operation, key); err == nil {
				kept = append(kept, key)
			}
		}
		if diff := cmp.Diff([]string{"kept"}, kept); diff != "" {
			t.Errorf("responses (-want +got):\n%s", diff)
		}
	})
}
