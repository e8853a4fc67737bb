package dnsrec_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/foxcpp/go-mockdns"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/smtp/smtptest"
)

var ann = dnsrec.Domain{
	Name: "ann.example", Token: "7c1f", MailDomain: "agents.example", Hostname: "mx.agents.example",
	Keys: []dnsrec.Key{{Selector: "s", Algorithm: "rsa", Public: strings.Repeat("MIIB", 100), Required: true}},
}

// record returns the record of a kind.
func record(t *testing.T, kind dnsrec.Kind) dnsrec.Record {
	t.Helper()
	for _, r := range dnsrec.Records(ann) {
		if r.Kind == kind {
			return r
		}
	}
	t.Fatalf("no record for %s", kind)
	return dnsrec.Record{}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	key := ann.Keys[0].Public
	broken := smtptest.Zone{Err: errors.New("broken")}
	txt := func(texts ...string) smtptest.Zone { return smtptest.Zone{TXT: texts} }
	mx := func(hosts ...string) smtptest.Zone {
		var z smtptest.Zone
		for _, h := range hosts {
			z.MX = append(z.MX, net.MX{Host: h, Pref: 5})
		}
		return z
	}
	tests := []struct {
		name string
		kind dnsrec.Kind
		zone smtptest.Zone // of the record's name
		want dnsrec.Finding
	}{
		{"the token", dnsrec.Ownership, txt("other", "postroom-verification=7c1f"), dnsrec.Found},
		{"the token of another", dnsrec.Ownership, txt("postroom-verification=7c1e"), dnsrec.Missing},
		{"the token and more", dnsrec.Ownership, txt("postroom-verification=7c1f0"), dnsrec.Missing},
		{"no such name", dnsrec.Ownership, smtptest.Zone{}, dnsrec.Missing},
		{"SERVFAIL", dnsrec.Ownership, broken, dnsrec.Unknown},
		{"the key as proposed", dnsrec.DKIM, txt("v=DKIM1; k=rsa; p=" + key), dnsrec.Found},
		{"the key without what may be left out", dnsrec.DKIM, txt("p=" + key), dnsrec.Found},
		{"the key with space inside, and notes", dnsrec.DKIM, txt("v=DKIM1;n=x;p=" + key[:60] + " " + key[60:] + ";"), dnsrec.Found},
		{"a key of another kind", dnsrec.DKIM, txt("k=ed25519; p=" + key), dnsrec.Missing},
		{"a key cut short", dnsrec.DKIM, txt("v=DKIM1; k=rsa; p=" + key[:255]), dnsrec.Missing},
		{"a key taken back", dnsrec.DKIM, txt("v=DKIM1; k=rsa; p="), dnsrec.Missing},
		{"SPF with others", dnsrec.SPF, txt("v=spf1 mx +include:AGENTS.example ~all"), dnsrec.Found},
		{"SPF without us", dnsrec.SPF, txt("v=spf1 include:x.agents.example -all"), dnsrec.Missing},
		{"SPF that forbids us", dnsrec.SPF, txt("v=spf1 -include:agents.example -all"), dnsrec.Missing},
		{"SPF twice", dnsrec.SPF, txt("v=spf1 include:agents.example", "v=spf1 -all"), dnsrec.Missing},
		{"SPF of another version", dnsrec.SPF, txt("v=spf10 include:agents.example"), dnsrec.Missing},
		{"DMARC of any policy", dnsrec.DMARC, txt("v=DMARC1;p=reject"), dnsrec.Found},
		{"DMARC twice", dnsrec.DMARC, txt("v=DMARC1; p=none", "v=DMARC1; p=reject"), dnsrec.Missing},
		{"our host among others", dnsrec.MX, mx("a.example.", "MX.agents.example."), dnsrec.Found},
		{"other hosts", dnsrec.MX, mx("a.example.", "mx.agents.example.evil.example."), dnsrec.Missing},
		{"MX and SERVFAIL", dnsrec.ReturnPath, broken, dnsrec.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := record(t, tt.kind)
			resolver := &mockdns.Resolver{Zones: map[string]mockdns.Zone{r.Name + ".": tt.zone}}
			got := dnsrec.Check(t.Context(), resolver, []dnsrec.Record{r})
			if len(got) != 1 || got[0].Finding != tt.want {
				t.Errorf("%+v, want %v", got, tt.want)
			}
			if has := len(tt.zone.TXT)+len(tt.zone.MX) > 0; (len(got[0].Has) > 0) != (has && tt.want == dnsrec.Missing) {
				t.Errorf("DNS has %q", got[0].Has)
			}
		})
	}
}

func TestDMARCOfAParentDomainCounts(t *testing.T) {
	t.Parallel()
	d := ann
	d.Name = "a.b.ann.example"
	var r dnsrec.Record
	for _, r = range dnsrec.Records(d) {
		if r.Kind == dnsrec.DMARC {
			break
		}
	}
	for name, want := range map[string]dnsrec.Finding{"_dmarc.ann.example.": dnsrec.Found, "_dmarc.example.": dnsrec.Missing} {
		resolver := &mockdns.Resolver{Zones: map[string]mockdns.Zone{name: {TXT: []string{"v=DMARC1; p=none"}}}}
		if got := dnsrec.Check(t.Context(), resolver, []dnsrec.Record{r}); got[0].Finding != want {
			t.Errorf("a policy at %s: %v", name, got[0].Finding)
		}
	}
}

// silent is a resolver that never responds.
type silent struct{ dns.Resolver }

func (silent) LookupTXT(ctx context.Context, _ string) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) LookupMX(ctx context.Context, _ string) ([]*net.MX, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCheckEnds(t *testing.T) { // A6
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for i, f := range dnsrec.Check(t.Context(), silent{}, dnsrec.Records(ann)) {
			if f.Finding != dnsrec.Unknown {
				t.Errorf("record %d is %v without a response", i, f)
			}
		}
		if took := time.Since(began); took != dnsrec.Timeout {
			t.Errorf("it took %v", took)
		}
	})
}

func TestNamesLeaveRoomForSelectors(t *testing.T) {
	t.Parallel()
	d := ann
	name, err := dnsrec.CheckName(strings.Repeat("abcdefghi.", 21) + "abc.example")
	if err != nil {
		t.Fatal(err)
	}
	d.Name, d.Keys = name, []dnsrec.Key{{Selector: "pr-abcdefgh-ed25519"}}
	for _, r := range dnsrec.Records(d) {
		if len(r.Name) > 253 {
			t.Errorf("%s has %d characters", r.Name, len(r.Name))
		}
	}
}

// A string of a TXT record has at most 255 bytes, and values of strangers are cut.
func TestLongValues(t *testing.T) {
	t.Parallel()
	r := dnsrec.Record{Type: "TXT", Name: "a.example", Value: strings.Repeat("k", 600)}
	want := `a.example. 3600 IN TXT "` + r.Value[:255] + `" "` + r.Value[:255] + `" "` + r.Value[:90] + `"`
	if got := r.ZoneLine(); got != want {
		t.Error(got)
	}
	r.Kind = dnsrec.Ownership
	many := slices.Repeat([]string{strings.Repeat("é", 1000)}, 9)
	resolver := &mockdns.Resolver{Zones: map[string]mockdns.Zone{"a.example.": {TXT: many}}}
	got := dnsrec.Check(t.Context(), resolver, []dnsrec.Record{r})[0]
	if len(got.Has) != 3 || len(got.Has[0]) > 400 || !utf8.ValidString(got.Has[0]) {
		t.Errorf("%d values, %q", len(got.Has), got.Has)
	}
}
