package store_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func newHook(t *testing.T, s *store.Store, accountID int64, types ...store.EventType) (store.Webhook, string) {
	t.Helper()
	w := store.Webhook{AccountID: accountID, URL: "https://hooks.example/", Active: true}
	if types != nil {
		w.Events = &store.JSON[[]store.EventType]{V: types}
	}
	w, secret, err := s.CreateWebhook(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w, secret
}

func hookDeliveries(t *testing.T, s *store.Store, w store.Webhook, f store.DeliveryFilter) []store.Delivery {
	t.Helper()
	l, err := s.ListDeliveries(t.Context(), w, f, store.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return l.Rows
}

func TestWebhookSecretsAreSealed(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		w, secret := newHook(t, s, storetest.Account(t, s).Seq)
		plain, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(plain) != 32 {
			t.Fatalf("secret %q: %v", secret, err)
		}
		wantNotStored(t, cfg, secret)
		wantNotStored(t, cfg, string(plain))
		keys, err := s.WebhookKeys(w, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]byte{plain}, keys); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		other, _ := newHook(t, s, w.AccountID)
		other.Sealed = w.Sealed // put where another belongs
		if _, err := s.WebhookKeys(other, time.Now()); err == nil {
			t.Error("the secret of another endpoint opens")
		}
	})
}

// endpointsBut is a filter for claims of the deliveries of one endpoint.
func endpointsBut(w store.Webhook) *work.Busy {
	var busy work.Busy
	for seq := range int64(100) {
		if seq != w.Seq {
			busy.Keys = append(busy.Keys, seq)
		}
	}
	return &busy
}

// claimQueues claims all deliveries that are due, and those behind them in their
// queues, and records that they succeeded.
func claimQueues(t *testing.T, s *store.Store, w store.Webhook) (all []store.ClaimedDelivery) {
	t.Helper()
	for {
		claimed, err := s.ClaimDeliveries(t.Context(), 100, time.Minute, endpointsBut(w))
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed) == 0 {
			return all
		}
		for _, c := range claimed {
			r := store.DeliveryResult{Seq: c.Seq, EndpointSeq: c.EndpointSeq, Fence: c.Fence, Status: store.DeliverySucceeded}
			if err := s.RecordDelivery(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, claimed...)
	}
}

// A delivery is one claim's at a time, and who slept through his lease can no
// longer record.
func TestDeliveriesAreClaimedOnce(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		w, _ := newHook(t, s, in.AccountID)
		for range 3 {
			storetest.Received(t, s, in)
		}
		claim := func(limit int) []store.ClaimedDelivery {
			got, err := s.ClaimDeliveries(t.Context(), limit, time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		first, second := claim(2), claim(2)
		if len(first) != 2 || len(second) != 1 || len(claim(2)) != 0 || first[0].Seq > first[1].Seq || second[0].Seq < first[1].Seq {
			t.Fatalf("claimed %d and %d", len(first), len(second))
		}
		clock.Add(time.Minute)
		again := claim(1)[0]
		done := func(c store.ClaimedDelivery) error {
			return s.RecordDelivery(t.Context(), store.DeliveryResult{
				Seq: c.Seq, EndpointSeq: c.EndpointSeq, Fence: c.Fence, Status: store.DeliverySucceeded, Counts: true,
			})
		}
		if err := done(first[0]); !errors.Is(err, store.ErrState) {
			t.Errorf("after the lease: got %v, want ErrState", err)
		}
		if err := done(again); err != nil {
			t.Error(err)
		}
		if got := hookDeliveries(t, s, w, store.DeliveryFilter{Status: store.DeliverySucceeded}); len(got) != 1 || got[0].Attempts != 2 {
			t.Errorf("succeeded: %+v", got)
		}
	})
}

func TestDeliveriesOfADeletedEndpointAreSwept(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		gone, _ := newHook(t, s, in.AccountID)
		stays, _ := newHook(t, s, in.AccountID)
		storetest.Received(t, s, in)
		if err := s.DeleteWebhook(t.Context(), in.AccountID, gone.ID); err != nil {
			t.Fatal(err)
		}
		claimed, err := s.ClaimDeliveries(t.Context(), 10, time.Minute, nil)
		if err != nil || len(claimed) != 1 || claimed[0].EndpointSeq != stays.Seq {
			t.Errorf("claimed %+v: %v", claimed, err)
		}
		sweep := func(want int) {
			t.Helper()
			if n, err := s.Sweep(t.Context(), "webhook_deliveries"); err != nil || n != want {
				t.Errorf("swept %d, want %d: %v", n, want, err)
			}
		}
		sweep(1)
		sweep(0)
		clock.Add(store.DeliveryTTL)
		sweep(1)
		if got := hookDeliveries(t, s, stays, store.DeliveryFilter{}); len(got) != 0 {
			t.Errorf("after %v there are %+v", store.DeliveryTTL, got)
		}
	})
}

func TestTwoRotationsEndTheFirstSecret(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		w, _ := newHook(t, s, storetest.Account(t, s).Seq)
		first, err := s.WebhookKeys(w, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if w, _, err = s.RotateWebhook(t.Context(), w.AccountID, w.ID, nil, func(*store.Webhook) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := s.WebhookKeys(w, time.Now())
		if err != nil || len(keys) != 2 {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if bytes.Equal(k, first[0]) {
				t.Error("the first secret still signs")
			}
		}
	})
}
