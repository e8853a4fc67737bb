package doctor_test

import (
	"errors"
	"net"
	"testing"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

func TestFaultsOfTheDNS(t *testing.T) {
	t.Parallel()
	broken := smtptest.Zone{Err: errors.New("SERVFAIL")}
	other := func(w *world, z smtptest.Zone) { w.zones[mailDomain+"."] = z }
	mx := []net.MX{{Host: hostname + ".", Pref: 10}}
	const rsa, ed = "postroom-rsa._domainkey.agents.example.", "postroom-ed25519._domainkey.agents.example."
	tests := []struct {
		name   string
		spoil  func(w *world)
		check  string
		status doctor.Status
		saw    string
		advice string
	}{
		{"the host has no address", func(w *world) { delete(w.zones, hostname+".") }, "host", doctor.Fail, "has no address", "publish: mx.agents.example. 3600 IN A"},
		{"the DNS is broken for the host", func(w *world) { w.zones[hostname+"."] = broken }, "host", doctor.Warn, "DNS lookup failed", ""},
		{"the host's address is private", func(w *world) { w.zones[hostname+"."] = smtptest.A("10.1.2.3") }, "host", doctor.Warn, "10.1.2.3, which is not a public address", "public address"},
		{"the address has no name", func(w *world) { delete(w.zones, "2.0.0.127.in-addr.arpa.") }, "ptr", doctor.Fail, "has no PTR record", "PTR record to mx.agents.example"},
		{"the address has a name that does not lead back", func(w *world) {
			w.zones["2.0.0.127.in-addr.arpa."] = smtptest.Zone{PTR: []string{"vps7.cloud.example."}}
		}, "ptr", doctor.Fail, "vps7.cloud.example, which does not resolve back", "PTR record"},
		{"no MX", func(w *world) { other(w, txt("v=spf1 ip4:127.0.0.2 -all")) }, "mx", doctor.Fail, "is missing", "publish: agents.example. 3600 IN MX 10 mx.agents.example."},
		{"the MX of another", func(w *world) {
			other(w, smtptest.Zone{MX: []net.MX{{Host: "mx.elsewhere.example.", Pref: 1}}})
		}, "mx", doctor.Fail, "1 mx.elsewhere.example.", "publish:"},
		{"the DNS is broken for the domain", func(w *world) { other(w, broken) }, "mx", doctor.Warn, "DNS lookup failed", "POSTROOM_RESOLVER"},
		{"no SPF", func(w *world) { other(w, smtptest.Zone{MX: mx}) }, "spf", doctor.Fail, "has no SPF record", `publish: agents.example. 3600 IN TXT "v=spf1 mx -all"`},
		{"an SPF record without this host", func(w *world) {
			other(w, smtptest.Zone{MX: mx, TXT: []string{"v=spf1 ip4:192.0.2.1 -all"}})
		}, "spf", doctor.Fail, "returns fail", "ip4:127.0.0.2"},
		{"two SPF records", func(w *world) {
			other(w, smtptest.Zone{MX: mx, TXT: []string{"v=spf1 mx -all", "v=spf1 -all"}})
		}, "spf", doctor.Fail, "permerror", ""},
		{"no RSA key", func(w *world) { delete(w.zones, rsa) }, "dkim", doctor.Fail, "postroom-rsa._domainkey.agents.example TXT is missing", "v=DKIM1; k=rsa; p="},
		{"another's RSA key", func(w *world) { w.zones[rsa] = txt("v=DKIM1; k=rsa; p=AAAA") }, "dkim", doctor.Fail, `"v=DKIM1; k=rsa; p=AAAA"`, "publish:"},
		{"no Ed25519 key", func(w *world) { delete(w.zones, ed) }, "dkim", doctor.Warn, "is missing", "k=ed25519"},
		{"no DMARC", func(w *world) { delete(w.zones, "_dmarc.agents.example.") }, "dmarc", doctor.Warn, "is missing", "v=DMARC1"},
		{"a domain without an account", func(w *world) { w.cfg.Domain = "unused.example" }, "dns", doctor.Fail, "no account has the domain", "POST /v1/domains"},
		{"a domain that this machine alone knows", func(w *world) { w.cfg.MailDomain = "postroom.localhost" }, "dns", doctor.Skipped, "only known on this machine", "POSTROOM_MAIL_DOMAIN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite)
			tt.spoil(w)
			wantResult(t, w.run(t), tt.check, tt.status, tt.saw, tt.advice)
		})
	}
}

// TestDomainsOfAccountsAreChecked breaks the records of one of two domains.
func TestDomainsOfAccountsAreChecked(t *testing.T) {
	t.Parallel()
	storetestEngines(t, func(t *testing.T, w *world) {
		w.accountDomain(t, "shop.example")
		w.accountDomain(t, "news.example")
		delete(w.zones, "_postroom.shop.example.")
		delete(w.zones, "bounces.news.example.")
		delete(w.zones, "news.example.")
		r := w.run(t)
		wantResult(t, r, "ownership", doctor.Fail, "_postroom.shop.example TXT is missing", `TXT "postroom-verification=token"`)
		wantResult(t, r, "ownership", doctor.OK, "_postroom.news.example", "")
		wantResult(t, r, "spf", doctor.Warn, "bounces.news.example TXT is missing", "include:agents.example")
		wantResult(t, r, "mx", doctor.Skipped, "news.example MX is missing", "")

		w.cfg.Domain = "news.example"
		r = w.run(t)
		for _, one := range r.Results {
			if one.Subject == "shop.example" || one.Subject == mailDomain {
				t.Errorf("only one domain was requested, but %s checked %s", one.Check, one.Subject)
			}
		}
		wantResult(t, r, "ownership", doctor.OK, "_postroom.news.example", "")
	})
}

// The PTR record, SPF and MX hosts are the business of the relay.
func TestRelayNeedsNoPTRRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite)
	relay := smtptest.NewMX(t, smtptest.MXConfig{})
	w.cfg.Relay = parseRelay(t, "smtp://"+relay.Addr())
	delete(w.zones, "2.0.0.127.in-addr.arpa.")
	r := w.run(t)
	for _, check := range []string{"ptr", "outbound", "spf"} {
		if all := find(r, check); len(all) > 0 {
			t.Errorf("%s was checked: %v", check, all)
		}
	}
}

func storetestEngines(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, e))
		})
	}
}
