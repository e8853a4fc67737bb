package handlers_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// signingKeys are shared: creating an RSA key takes longer than most tests.
var signingKeys = sync.OnceValues(func() ([]store.DKIMKey, error) { return queue.NewKeys("") })

// newDomains returns domains that use the resolver.
func newDomains(t *testing.T, st *store.Store, r *net.Resolver) *domains.Domains {
	t.Helper()
	d, err := domains.New(domains.Config{
		Store: st, Resolver: r, MailDomain: mailDomain, Hostname: "mx.in.example", TokenKey: []byte(strings.Repeat("t", 32)),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		NewKeys: func(domain string) ([]store.DKIMKey, error) {
			made, err := signingKeys()
			keys := make([]store.DKIMKey, 0, len(made))
			for _, k := range made {
				k.Domain, k.Selector = domain, strings.ToLower(store.NewLongID("s", time.Now())[13:])
				keys = append(keys, k)
			}
			return keys, err
		},
	})
	must(t, err)
	return d
}

// dns is a DNS server with the zones of domains.
type dns struct {
	*smtptest.ChangingDNS
	t     *testing.T
	zones smtptest.Zones
	asked *domains.Domains // uses this server
}

// publish adds the records of these kinds.
func (d *dns) publish(of domain, kinds ...string) {
	d.t.Helper()
	d.zones = cloned(d.zones)
	for _, r := range of.Records {
		z := d.zones[r.Name+"."]
		switch {
		case !slices.Contains(kinds, r.Record):
			continue
		case r.Type == "MX":
			z.MX = append(slices.Clip(z.MX), net.MX{Host: r.Value + ".", Pref: uint16(*r.Priority)}) //nolint:gosec // 10
		default:
			z.TXT = append(slices.Clip(z.TXT), r.Value)
		}
		d.zones[r.Name+"."] = z
	}
	d.Set(d.t, d.zones)
}

// cloned returns a copy, because the server may be reading the zones.
func cloned(zones smtptest.Zones) smtptest.Zones {
	all := smtptest.Zones{}
	maps.Copy(all, zones)
	return all
}

// withdraw removes the records of these kinds.
func (d *dns) withdraw(of domain, kinds ...string) {
	d.t.Helper()
	d.zones = cloned(d.zones)
	for _, r := range of.Records {
		if slices.Contains(kinds, r.Record) {
			delete(d.zones, r.Name+".")
		}
	}
	d.Set(d.t, d.zones)
}

// eachDomain is each with a DNS server.
func eachDomain(t *testing.T, test func(t *testing.T, s *server, zone *dns)) {
	t.Helper()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		st, zone := storetest.OpenConfig(t, cfg), &dns{ChangingDNS: smtptest.NewChangingDNS(t), t: t}
		zone.asked = newDomains(t, st, outbound.NewResolver(zone.Addr()))
		s := newServer(t, st, clock, func(c *handlers.Config) { c.Domains = zone.asked })
		s.database = cfg.Database
		test(t, s, zone)
	})
}

type dnsRecord struct {
	Record   string   `json:"record"`
	Type     string   `json:"type"`
	Name     string   `json:"name"`
	Value    string   `json:"value"`
	Priority *int     `json:"priority"`
	Status   string   `json:"status"`
	Found    []string `json:"found"`
	Required bool     `json:"required"`
}

type domain struct {
	ID         string      `json:"id"`
	Domain     string      `json:"domain"`
	Status     string      `json:"status"`
	Records    []dnsRecord `json:"dns_records"`
	VerifiedAt *string     `json:"verified_at"`
}

func (s *server) newDomain(t *testing.T, name string, opts ...option) domain {
	t.Helper()
	res := s.do(t, http.MethodPost, "/v1/domains", `{"domain":"`+name+`"}`, opts...)
	res.want(t, http.StatusCreated)
	return readDomain(t, res)
}

func (s *server) verify(t *testing.T, id string, opts ...option) domain {
	t.Helper()
	res := s.do(t, http.MethodPost, "/v1/domains/"+id+"/verify", "", opts...)
	res.want(t, http.StatusOK)
	return readDomain(t, res)
}

func readDomain(t *testing.T, res response) domain {
	t.Helper()
	var d domain
	must(t, json.Unmarshal(res.body, &d))
	return d
}

// statuses returns the status of each kind of record. Of the two keys it uses
// the first one, RSA.
func (d domain) statuses() map[string]string {
	out := map[string]string{}
	for _, r := range d.Records {
		if _, ok := out[r.Record]; !ok {
			out[r.Record] = r.Status
		}
	}
	return out
}

func TestDomainIsVerifiedOnceItsRecordsArePublished(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		made := s.newDomain(t, "Mail.Ann.Example.")
		if made.Domain != "mail.ann.example" || made.Status != "pending" || made.VerifiedAt != nil {
			t.Errorf("made %+v", made)
		}
		var kinds []string
		for _, r := range made.Records {
			kinds = append(kinds, r.Record+" "+r.Type)
			if r.Status != "pending" || r.Required != (r.Record == "OWNERSHIP" || r.Record == "DKIM" && strings.Contains(r.Value, "k=rsa")) {
				t.Errorf("record %+v", r)
			}
		}
		want := []string{"OWNERSHIP TXT", "DKIM TXT", "DKIM TXT", "SPF TXT", "RETURN_PATH MX", "DMARC TXT", "MX MX"}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Error(diff)
		}

		if d := s.verify(t, made.ID); d.Status != "pending" || d.statuses()["OWNERSHIP"] != "missing" || d.statuses()["MX"] != "missing" {
			t.Errorf("before anything is published: %+v", d)
		}
		verify := func() response { return s.do(t, http.MethodPost, "/v1/domains/"+made.ID+"/verify", "") }
		verify().says(t, "sending_host", `{"name":"mx.in.example","status":"missing","addresses":[]}`)
		zone.zones = smtptest.Zones{"mx.in.example.": smtptest.A("192.0.2.7"), "7.2.0.192.in-addr.arpa.": {PTR: []string{"mx.in.example."}}}
		zone.Set(t, zone.zones)
		verify().says(t, "sending_host", `{"name":"mx.in.example","status":"verified","addresses":[{"address":"192.0.2.7","ptr":"mx.in.example","status":"verified"}]}`)
		zone.zones[made.Records[0].Name+"."] = smtptest.Zone{TXT: []string{"postroom-verification=another"}}
		zone.publish(made, "DKIM")
		if d := s.verify(t, made.ID); d.Status != "pending" || d.statuses()["DKIM"] != "verified" || d.statuses()["OWNERSHIP"] != "missing" || !slices.Equal(d.Records[0].Found, []string{"postroom-verification=another"}) {
			t.Errorf("with the key and another token: %+v", d)
		}
		delete(zone.zones, made.Records[0].Name+".")
		zone.publish(made, "OWNERSHIP")
		if d := s.verify(t, made.ID); len(d.Records[0].Found) > 0 || d.Status != "verified" || d.statuses()["SPF"] != "missing" {
			t.Errorf("with what is required: %+v", d)
		}
		zone.publish(made, "SPF", "RETURN_PATH", "DMARC", "MX")
		s.verify(t, made.ID)
		d := readDomain(t, s.do(t, http.MethodGet, "/v1/domains/"+made.ID, ""))
		if d.VerifiedAt == nil || d.Status != "verified" {
			t.Errorf("in the end %+v", d)
		}
		for _, r := range d.Records {
			if r.Status != "verified" {
				t.Errorf("%s %s is %s", r.Record, r.Name, r.Status)
			}
		}
	})
}

func TestDomainNamesAreChecked(t *testing.T) {
	s := serve(t)
	s.newDomain(t, "ann.example")
	tests := []struct {
		name, domain string
		status       int
		code         string
	}{
		{"a domain of the account", "ann.example", 409, "domain_taken domain"},
		{"the same domain in capitals, with a dot", "ANN.example.", 409, "domain_taken domain"},
		{"the mail domain of the installation", mailDomain, 409, "domain_taken domain"},
		{"one label", "localhost", 400, "invalid_request domain"},
		{"an address", "192.0.2.1", 400, "invalid_request domain"},
		{"an IPv6 address", "[2001:db8::1]", 400, "invalid_request domain"},
		{"a suffix", "co.uk", 400, "invalid_request domain"},
		{"an empty label", "a..example", 400, "invalid_request domain"},
		{"a wildcard", "*.ann.example", 400, "invalid_request domain"},
		{"an underscore", "_dmarc.ann.example", 400, "invalid_request domain"},
		{"a mailbox", "a@ann.example", 400, "invalid_request domain"},
		{"a long label", strings.Repeat("a", 64) + ".example", 400, "invalid_request domain"},
		{"no room for selectors", strings.Repeat("abcdefg.", 29) + "example", 400, "invalid_request domain"},
		{"a line break (M9)", `ann.example\r\nx`, 400, "invalid_request domain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.do(t, http.MethodPost, "/v1/domains", `{"domain":"`+tt.domain+`"}`, brokenIf(tt.status))
			res.wantError(t, tt.status, tt.code)
		})
	}
	if d := s.newDomain(t, "bücher.example"); d.Domain != "xn--bcher-kva.example" {
		t.Errorf("made %q", d.Domain)
	}
}

// TestDomainOfAnotherAccountIsNotThere also lets two accounts add the same
// domain. It belongs to the one whose token and key are published.
func TestDomainOfAnotherAccountIsNotThere(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		other := as(s.newKey(t, func(k *store.Key) { k.AccountID = storetest.Account(t, s.store).Seq }))
		mine, theirs := s.newDomain(t, "ann.example"), s.newDomain(t, "ann.example", other)
		for _, call := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/verify"}} {
			s.do(t, call[0], "/v1/domains/"+theirs.ID+call[1], "").want(t, http.StatusNotFound)
		}
		if mine.Records[0].Value == theirs.Records[0].Value || mine.Records[1].Name == theirs.Records[1].Name {
			t.Errorf("two accounts publish the same: %+v, %+v", mine.Records[:2], theirs.Records[:2])
		}
		zone.publish(theirs, "OWNERSHIP", "DKIM")
		if d := s.verify(t, mine.ID); d.Status != "pending" {
			t.Errorf("mine became %s by what they published", d.Status)
		}
		if d := s.verify(t, theirs.ID, other); d.Status != "verified" {
			t.Errorf("theirs is %s", d.Status)
		}
		zone.publish(mine, "OWNERSHIP", "DKIM")
		if d := s.verify(t, mine.ID); d.Status != "pending" || d.statuses()["OWNERSHIP"] != "verified" {
			t.Errorf("mine is %+v while it is theirs", d)
		}
		s.do(t, http.MethodDelete, "/v1/domains/"+theirs.ID, "", other).want(t, http.StatusOK)
		if d := s.verify(t, mine.ID); d.Status != "verified" {
			t.Errorf("the domain is %s after the other account deleted it", d.Status)
		}
	})
}

func TestDeletedDomainSuspendsItsInboxes(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		d := s.newDomain(t, "ann.example")
		inbox := `{"name":"desk","domain":"Ann.Example"}`
		s.do(t, http.MethodPost, "/v1/inboxes", inbox).wantError(t, http.StatusForbidden, "domain_not_verified domain")
		zone.publish(d, "OWNERSHIP", "DKIM")
		s.verify(t, d.ID)
		var in struct{ ID, Address string }
		res := s.do(t, http.MethodPost, "/v1/inboxes", inbox)
		res.want(t, http.StatusCreated)
		if err := json.Unmarshal(res.body, &in); err != nil || in.Address != "desk@ann.example" {
			t.Fatalf("%+v, %v", in, err)
		}
		res = s.do(t, http.MethodDelete, "/v1/domains/"+d.ID, "")
		res.want(t, http.StatusOK)
		if want := `{"object":"domain","id":"` + d.ID + `","deleted":true}`; strings.TrimSpace(string(res.body)) != want {
			t.Errorf("response %s", res.body)
		}
		s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID, "").wantAt(t, "status", `"suspended"`)
		s.do(t, http.MethodGet, "/v1/domains/"+d.ID, "").want(t, http.StatusNotFound)
		s.do(t, http.MethodDelete, "/v1/domains/"+d.ID, "").want(t, http.StatusNotFound)
		s.do(t, http.MethodPost, "/v1/inboxes", `{"domain":"ann.example"}`).wantError(t, http.StatusForbidden, "domain_not_verified domain")
	})
}

// TestDegradedDomainIsReported: an endpoint gets one event with the records that a
// domain has lost, even if the records come back or the domain is deleted.
func TestDegradedDomainIsReported(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		w, d := s.webhookForAll(t), s.newDomain(t, "ann.example")
		zone.publish(d, "OWNERSHIP", "DKIM", "MX")
		s.verify(t, d.ID)
		zone.withdraw(d, "OWNERSHIP", "MX")
		s.verify(t, d.ID)
		s.verify(t, d.ID)
		zone.publish(d, "OWNERSHIP")
		s.verify(t, d.ID)
		s.do(t, http.MethodDelete, "/v1/domains/"+d.ID, "").want(t, http.StatusOK)
		bodies := s.bodies(t, w)[store.EventDomainDegraded]
		if len(bodies) != 1 {
			t.Fatalf("%d events, want 1", len(bodies))
		}
		var e struct {
			Data struct {
				domain
				Degraded []dnsRecord `json:"degraded_records"`
			} `json:"data"`
		}
		must(t, json.Unmarshal([]byte(bodies[0]), &e))
		if e.Data.ID != d.ID || e.Data.Status != "verified" || len(e.Data.Records) != len(d.Records) {
			t.Errorf("event with %+v", e.Data.domain)
		}
		if lost := e.Data.Degraded; len(lost) != 1 || lost[0].Record != "OWNERSHIP" || lost[0].Status != "missing" {
			t.Errorf("degraded records: %+v", lost)
		}
	})
}
