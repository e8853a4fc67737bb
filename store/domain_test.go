package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// domainOf is a domain of an account with a clock.
type domainOf struct {
	*store.Store
	t     *testing.T
	cfg   store.Config
	clock *storetest.Clock
	store.Domain
}

func eachDomain(t *testing.T, test func(t *testing.T, d *domainOf)) {
	t.Helper()
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC))
		cfg.Now = clock.Now
		d := &domainOf{Store: storetest.OpenConfig(t, cfg), t: t, cfg: cfg, clock: clock}
		d.Domain = d.add(storetest.Account(t, d.Store).Seq, "a")
		test(t, d)
	})
}

// add adds ann.example to an account, with keys named after generation.
func (d *domainOf) add(account int64, generation string) store.Domain {
	d.t.Helper()
	made, err := d.CreateDomain(d.t.Context(), store.Domain{AccountID: account, Name: "ann.example", Token: "token"}, keysOf(generation), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return made
}

func keysOf(generation string) []store.DKIMKey {
	return []store.DKIMKey{
		{Domain: "ann.example", Selector: generation + "r", Algorithm: "rsa", Public: "R", Private: []byte("private half of " + generation)},
		{Domain: "ann.example", Selector: generation + "e", Algorithm: "ed25519", Public: "E", Private: []byte("secret half of " + generation)},
	}
}

// looks is a look-up of the owner's record and of the keys, in which "v" is
// found, "m" missing and "?" not known. It changes d.
func (d *domainOf) looks(owner string, asked bool, keys map[string]string) {
	d.t.Helper()
	last := map[string]store.RecordLookup{"v": {Status: store.RecordVerified}, "m": {Status: store.RecordMissing}, "?": {Status: store.RecordPending}, "": {Status: store.RecordMissing}}
	found := []store.DomainRecord{
		{Kind: "OWNERSHIP", Type: "TXT", Name: "_postroom.ann.example", Value: "token", Required: true, RecordLookup: last[owner]},
		{Kind: "MX", Type: "MX", Name: "ann.example", RecordLookup: last["m"]},
	}
	required := true
	for _, k := range d.Keys {
		found = append(found, store.DomainRecord{
			Kind: "DKIM", Type: "TXT", Name: k.Selector + "._domainkey.ann.example", RecordLookup: last[keys[k.Selector]], Selector: k.Selector, Required: required,
		})
		required = false
	}
	after, err := d.RecordCheck(d.t.Context(), d.Domain, found, asked)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Domain = after
}

func (d *domainOf) want(what string, status store.DomainStatus, next time.Duration) {
	d.t.Helper()
	var wait time.Duration
	if d.NextCheckAt != nil {
		wait = d.NextCheckAt.Sub(d.clock.Now())
	}
	if d.Status != status || wait != next {
		d.t.Errorf("%s: %s, next look-up in %v; want %s, %v", what, d.Status, wait, status, next)
	}
}

var published = map[string]string{"ar": "v", "ae": "v"}

func TestPendingDomainFailsAfterThreeDays(t *testing.T) {
	eachDomain(t, func(t *testing.T, d *domainOf) {
		d.clock.Add(72*time.Hour - time.Second)
		d.looks("m", false, published)
		d.want("a second early", store.DomainPending, time.Hour)
		d.clock.Add(time.Second)
		d.looks("m", true, published)
		d.want("a user asks", store.DomainPending, time.Hour)
		d.clock.Add(72 * time.Hour)
		d.looks("m", false, published)
		d.want("three days after that", store.DomainFailed, 0)
		d.looks("m", true, published)
		d.want("a user asks again", store.DomainPending, time.Hour)
		d.clock.Add(72 * time.Hour)
		d.looks("?", false, published)
		d.want("the DNS does not respond for three days", store.DomainFailed, 0)
		d.looks("v", true, published)
		d.want("everything is there", store.DomainVerified, 24*time.Hour)
		if d.VerifiedAt == nil || !d.VerifiedAt.Equal(d.clock.Now()) {
			t.Errorf("verified at %v", d.VerifiedAt)
		}
	})
}

func TestVerifiedDomainThatLosesARecord(t *testing.T) {
	eachDomain(t, func(t *testing.T, d *domainOf) {
		d.looks("v", false, published)
		d.looks("?", false, map[string]string{"ar": "?", "ae": "?"})
		d.want("the DNS is in trouble (A6)", store.DomainVerified, 24*time.Hour)
		d.wantEvents()
		d.looks("v", false, map[string]string{"ar": "v"})
		d.want("a record that is not required goes", store.DomainVerified, 24*time.Hour)
		d.wantEvents()
		d.looks("m", false, published)
		d.want("a required one goes", store.DomainVerified, time.Hour)
		d.wantEvents("OWNERSHIP")
		d.clock.Add(time.Hour)
		d.looks("m", false, published)
		d.wantEvents("OWNERSHIP")
		d.looks("m", false, nil)
		d.wantEvents("OWNERSHIP", "DKIM")
		d.looks("v", false, published)
		d.want("they come back", store.DomainVerified, 24*time.Hour)
		d.looks("m", false, published)
		d.wantEvents("OWNERSHIP", "DKIM", "OWNERSHIP")
		d.clock.Add(72 * time.Hour)
		d.looks("?", false, published)
		d.want("three days later the state is unknown", store.DomainVerified, time.Hour)
		d.looks("m", true, published)
		d.want("a user asks", store.DomainVerified, time.Hour)
		d.looks("m", false, published)
		d.want("it is gone for three days", store.DomainFailed, 0)
		if keys, err := d.DKIMKeys(t.Context(), d.AccountID, "ann.example"); err != nil || len(keys) != 0 {
			t.Errorf("a failed domain signs with %v, %v", keys, err)
		}
	})
}

// wantEvents wants the events about the domain to report these lost records.
func (d *domainOf) wantEvents(kinds ...string) {
	d.t.Helper()
	var rows []struct {
		AccountID int64  `db:"account_id"`
		Data      string `db:"data"`
	}
	if err := openRaw(d.t, d.cfg).Select(&rows, `SELECT account_id, data FROM events WHERE type = 'domain.health.degraded' ORDER BY seq`); err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		var data store.DomainEventData
		if err := json.Unmarshal([]byte(row.Data), &data); err != nil {
			d.t.Fatal(err)
		}
		if row.AccountID != d.AccountID || data.DomainID != d.ID || len(data.Records) != 4 {
			d.t.Errorf("event of account %d: %+v", row.AccountID, data)
		}
		for _, r := range data.Degraded {
			got = append(got, r.Kind)
		}
	}
	if diff := cmp.Diff(kinds, got); diff != "" {
		d.t.Errorf("records in events:\n%s", diff)
	}
}

// TestKeysRotate (K2): a new key signs from when it is found published, and the
// old one stays up for seven days more. At no time is there none.
func TestKeysRotate(t *testing.T) {
	eachDomain(t, func(t *testing.T, d *domainOf) {
		wantKeys := func(when string, signing, shown []string) {
			t.Helper()
			keys, err := d.DKIMKeys(t.Context(), d.AccountID, "ann.example")
			if err != nil {
				t.Fatal(err)
			}
			var signs, all []string
			for _, k := range keys {
				signs = append(signs, k.Selector)
			}
			for _, k := range d.Keys {
				all = append(all, k.Selector)
			}
			if diff := cmp.Diff([][]string{signing, shown}, [][]string{signs, all}); diff != "" {
				t.Errorf("%s: the selectors that sign, and that are shown:\n%s", when, diff)
			}
		}
		wantKeys("nothing is published", nil, []string{"ar", "ae"})
		d.looks("m", false, published)
		wantKeys("not verified", nil, []string{"ar", "ae"})
		if _, err := d.RotateKeys(t.Context(), d.AccountID, d.ID, keysOf("b")); err != nil {
			t.Fatal(err)
		}
		d.looks("v", false, published)
		wantKeys("verified without the new keys", []string{"ar", "ae"}, []string{"ar", "ae", "br", "be"})
		d.want("new keys wait", store.DomainVerified, time.Hour)
		if _, err := d.RotateKeys(t.Context(), d.AccountID, d.ID, keysOf("c")); !errors.Is(err, store.ErrState) {
			t.Errorf("a second rotation at the same time: %v", err)
		}
		both := map[string]string{"ar": "v", "ae": "v", "br": "v"}
		d.looks("v", false, both)
		wantKeys("one new key is there", []string{"ae", "br"}, []string{"ar", "ae", "br", "be"})
		both["be"] = "v"
		d.looks("v", false, both)
		wantKeys("both are", []string{"br", "be"}, []string{"ar", "ae", "br", "be"})
		d.clock.Add(store.KeyRetireTTL - time.Second)
		d.looks("v", false, both)
		wantKeys("a second short of seven days later", []string{"br", "be"}, []string{"ar", "ae", "br", "be"})
		d.clock.Add(time.Second)
		d.looks("v", false, both)
		wantKeys("seven days later", []string{"br", "be"}, []string{"br", "be"})
	})
}

func TestDomainKeysAreSealed(t *testing.T) { // K1
	eachDomain(t, func(t *testing.T, d *domainOf) {
		wantNotStored(t, d.cfg, "private half of a")
		wantNotStored(t, d.cfg, "secret half of a")
		if err := d.DeleteDomain(t.Context(), d.AccountID, d.ID); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := openRaw(t, d.cfg).Get(&n, `SELECT count(*) FROM dkim_keys`); err != nil || n != 0 {
			t.Errorf("%d keys of a deleted domain are left, %v", n, err)
		}
		if _, err := d.RecordCheck(t.Context(), d.Domain, nil, false); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a look-up that was under way: %v", err)
		}
	})
}

// TestDomainIsVerifiedForOneAccount verifies one domain for eight accounts at the
// same time.
func TestDomainIsVerifiedForOneAccount(t *testing.T) {
	eachDomain(t, func(t *testing.T, d *domainOf) {
		claims := []store.Domain{d.Domain}
		for range 7 {
			made, err := d.CreateDomain(t.Context(), store.Domain{AccountID: storetest.Account(t, d.Store).Seq, Name: d.Name, Token: "t"}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			claims = append(claims, made)
		}
		found := []store.DomainRecord{{Kind: "OWNERSHIP", Required: true, RecordLookup: store.RecordLookup{Status: store.RecordVerified}}}
		var wg sync.WaitGroup
		var verified atomic.Int64
		for _, claim := range claims {
			wg.Go(func() {
				after, err := d.RecordCheck(t.Context(), claim, found, true)
				if err != nil {
					t.Error(err)
				}
				if after.Status == store.DomainVerified {
					verified.Add(1)
				}
			})
		}
		wg.Wait()
		if n := verified.Load(); n != 1 {
			t.Errorf("verified for %d accounts", n)
		}
	})
}

// TestDomainsAreClaimedOnce lets two nodes ask for what is due.
func TestDomainsAreClaimedOnce(t *testing.T) {
	eachDomain(t, func(t *testing.T, d *domainOf) {
		claim := func() int {
			rows, err := d.ClaimDomains(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if len(row.Keys) != 2 {
					t.Errorf("claimed with %d keys", len(row.Keys))
				}
			}
			return len(rows)
		}
		other := d.add(storetest.Account(t, d.Store).Seq, "b")
		if n := claim(); n != 0 {
			t.Errorf("%d are due at once", n)
		}
		d.clock.Add(time.Hour)
		if n := claim(); n != 2 {
			t.Errorf("%d are due after an hour", n)
		}
		if n := claim(); n != 0 {
			t.Errorf("%d are claimed twice", n)
		}
		d.looks("v", false, published)
		mine := d.Domain
		d.Domain = other
		d.looks("v", false, map[string]string{"br": "v", "be": "v"})
		d.want("verified for another account", store.DomainPending, time.Hour)
		if owner, err := d.DomainOwner(t.Context(), "ann.example"); err != nil || owner != mine.AccountID {
			t.Errorf("owner %d, %v", owner, err)
		}
	})
}
