package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

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
		if n, err := s.Sweep(t.Context(), "idempotency"); n != 0 || err != nil {
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
		if n, err := s.Sweep(t.Context(), "idempotency"); n != 1 || err != nil {
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
