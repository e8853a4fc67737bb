package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestMailPolicies(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ctx := t.Context()
		p := store.MailPolicy{
			Domain: "out.example", PolicyID: "1", Mode: "enforce", MX: store.JSON[[]string]{V: []string{"mx.out.example"}},
			FetchedAt: store.NewTime(clock.Now()), ExpiresAt: store.NewTime(clock.Now().Add(time.Hour)),
		}
		for _, change := range []func(){
			func() {},
			func() {
				p.PolicyID, p.Mode, p.MX.V, p.ExpiresAt = "2", "none", nil, store.NewTime(clock.Now().Add(2*time.Hour))
			},
		} {
			change()
			if err := s.SaveMailPolicy(ctx, p); err != nil {
				t.Fatal(err)
			}
			got, err := s.MailPolicy(ctx, "out.example")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if _, err := s.MailPolicy(ctx, "other.example"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another domain: %v", err)
		}
		if n, err := s.Sweep(ctx, "mail_policies"); n != 0 || err != nil {
			t.Errorf("swept %d, %v, want what holds to stay", n, err)
		}
		clock.Add(2 * time.Hour)
		if _, err := s.MailPolicy(ctx, "out.example"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a policy that is over: %v", err)
		}
		if n, err := s.Sweep(ctx, "mail_policies"); n != 1 || err != nil {
			t.Errorf("swept %d, %v, want 1", n, err)
		}
	})
}
