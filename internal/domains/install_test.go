package domains_test

import (
	"strings"
	"testing"
	"time"

	"github.com/foxcpp/go-mockdns"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// TestKeysOfTheInstallChange (K2): the first keys of the mail domain sign at once,
// further ones from when they are found published, and what they replace is shown
// for seven days more.
func TestKeysOfTheInstallChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const domain = "agents.example"
		if err := queue.EnsureKeys(t.Context(), w.store, domain); err != nil {
			t.Fatal(err)
		}
		made, err := queue.NewKeys(domain)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.store.RotateInstallKeys(t.Context(), domain, made); err != nil {
			t.Fatal(err)
		}
		look := func(when, signing, shown string) {
			t.Helper()
			if err := w.all.CheckInstall(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got [2][]string
			keys, err := w.store.DKIMKeys(t.Context(), store.TheInstall, domain)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				got[0] = append(got[0], k.Selector)
			}
			records, err := queue.Records(t.Context(), w.store, domain)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				got[1] = append(got[1], strings.TrimSuffix(r.Name, "._domainkey."+domain))
			}
			names := strings.NewReplacer("newR", made[0].Selector, "newE", made[1].Selector, "oldR", "postroom-rsa", "oldE", "postroom-ed25519")
			want := [2][]string{strings.Fields(names.Replace(signing)), strings.Fields(names.Replace(shown))}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: what signs, and what is shown:\n%s", when, diff)
			}
		}
		const all = "oldR oldE newR newE"
		look("nothing is published", "oldR oldE", all)
		w.dns.Zones = map[string]mockdns.Zone{}
		for _, k := range made {
			r := dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public}.Record(k.Domain)
			w.dns.Zones[r.Name+"."] = mockdns.Zone{TXT: []string{r.Value}}
		}
		look("both are published", "newR newE", all)
		w.clock.Add(store.KeyRetireTTL - time.Second)
		look("a second short of seven days later", "newR newE", all)
		w.clock.Add(time.Second)
		look("seven days later", "newR newE", "newR newE")
	})
}
