package domains_test

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/foxcpp/go-mockdns"

	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// world is an account with a domain, in a DNS that is a map.
type world struct {
	store  *store.Store
	clock  *storetest.Clock
	dns    *mockdns.Resolver
	all    *domains.Domains
	domain store.Domain
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		w := &world{clock: storetest.NewClock(time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC)), dns: &mockdns.Resolver{}}
		cfg.Now = w.clock.Now
		w.store = storetest.OpenConfig(t, cfg)
		var err error
		w.all, err = domains.New(domains.Config{
			Store: w.store, Resolver: w.dns, MailDomain: "agents.example", Hostname: "mx.agents.example",
			TokenKey: []byte(strings.Repeat("t", 32)), NewKeys: queue.NewKeys, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if w.domain, err = w.all.Add(t.Context(), storetest.Account(t, w.store).Seq, "ann.example", nil); err != nil {
			t.Fatal(err)
		}
		test(t, w)
	})
}

// publish sets the records of the domain in the DNS, except these kinds.
func (w *world) publish(without ...string) {
	w.dns.Zones = map[string]mockdns.Zone{}
	for _, r := range w.all.Records(w.domain) {
		z := w.dns.Zones[r.Name+"."]
		switch {
		case strings.Contains(strings.Join(without, " "), r.Kind):
			continue
		case r.Type == "MX":
			z.MX = append(z.MX, net.MX{Host: r.Value + ".", Pref: 10})
		default:
			z.TXT = append(z.TXT, r.Value)
		}
		w.dns.Zones[r.Name+"."] = z
	}
}

// later lets time go by, does a round that has to look n domains up, and wants the
// domain to be in this state.
func (w *world) later(t *testing.T, d time.Duration, n int, want store.DomainStatus) {
	t.Helper()
	w.clock.Add(d)
	if got, err := w.all.RunOnce(t.Context()); err != nil || got != n {
		t.Fatalf("the round looked %d domains up, want %d: %v", got, n, err)
	}
	var err error
	if w.domain, err = w.store.Domain(t.Context(), w.domain.AccountID, w.domain.ID); err != nil || w.domain.Status != want {
		t.Errorf("the domain is %s, want %s: %v", w.domain.Status, want, err)
	}
}

func TestRounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.later(t, 0, 0, store.DomainPending)
		w.later(t, time.Hour, 1, store.DomainPending)
		w.publish()
		w.later(t, time.Hour, 1, store.DomainVerified)
		w.later(t, time.Hour, 0, store.DomainVerified)
		w.dns.Zones = map[string]mockdns.Zone{} // of a resolver that fails
		for _, r := range w.all.Records(w.domain) {
			w.dns.Zones[r.Name+"."] = mockdns.Zone{Err: errors.New("broken")}
		}
		w.later(t, 23*time.Hour, 1, store.DomainVerified)
		if w.domain.DegradedAt != nil {
			t.Error("failed lookups count as missing records (A6)")
		}
		w.publish("OWNERSHIP")
		w.later(t, 24*time.Hour, 1, store.DomainVerified)
		if w.domain.DegradedAt == nil {
			t.Error("a missing record is not noted")
		}
		w.later(t, time.Hour, 1, store.DomainVerified)
		w.later(t, 71*time.Hour, 1, store.DomainFailed)
		w.later(t, 1000*time.Hour, 0, store.DomainFailed)
	})
}

func TestTheInstallsOwnDomainIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"agents.example", "ann.example"} {
			if _, err := w.all.Add(t.Context(), w.domain.AccountID, name, nil); !errors.Is(err, store.ErrDomainTaken) {
				t.Errorf("%s was added: %v", name, err)
			}
		}
	})
}
