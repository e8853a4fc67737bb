package web

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dnsrec"
)

func (d *Dashboard) listDomains(p *page) error {
	l, err := d.api.ListDomains(p.ctx(), gen.ListDomainsParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	return p.show("domains", list[gen.Domain]{l.Data, p.paging(l.Cursor), p.formOf(nil)})
}

func (d *Dashboard) createDomain(p *page) error {
	name := strings.ToLower(p.field("domain"))
	if _, url, is := strings.Cut(name, "://"); is { // the address of the website, copied from a browser
		name = strings.TrimPrefix(url, "www.")
	}
	name, _, _ = strings.Cut(name, "/")
	made, err := d.api.CreateDomain(p.ctx(), &gen.DomainCreate{Domain: name}, gen.CreateDomainParams{})
	if err != nil {
		return p.again(err, d.listDomains)
	}
	return p.done("/domains/"+made.ID, made.Domain+" added. Publish its DNS records, then verify it.")
}

func (d *Dashboard) showDomain(p *page) error {
	v, err := d.api.GetDomain(p.ctx(), gen.GetDomainParams{ID: p.id()})
	if err != nil {
		return err
	}
	return p.show("domain", struct {
		*gen.Domain
		Sending, Receiving []gen.DnsRecord
	}{v, recordsFor(v, false), recordsFor(v, true)})
}

// recordsFor returns the records of a domain that receiving needs, or those that sending
// needs.
func recordsFor(v *gen.Domain, receiving bool) []gen.DnsRecord {
	return slices.DeleteFunc(slices.Clone(v.DNSRecords), func(r gen.DnsRecord) bool { return (r.Record == "MX") != receiving })
}

// zoneLine returns a record as a line of a zone file.
func zoneLine(r gen.DnsRecord) string {
	return dnsrec.Record{Type: r.Type, Name: r.Name, Value: r.Value, Priority: r.Priority.Value}.ZoneLine()
}

// zoneName returns the name of a record as most DNS providers want it: without the domain
// that the provider manages, or "@" for that domain itself.
func zoneName(name string) string {
	zone, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return name
	}
	return cmp.Or(strings.TrimSuffix(strings.TrimSuffix(name, zone), "."), "@")
}

// recordUses describes the purpose of each kind of record.
var recordUses = map[string]string{
	"OWNERSHIP":   "Proves that you own the domain.",
	"DKIM":        "Signs your mail, so that recipients can verify that it is yours and unchanged.",
	"SPF":         "Authorizes this server to send for your return-path domain.",
	"RETURN_PATH": "Routes bounces to this server.",
	"DMARC":       "Tells mail servers how to treat mail that fails authentication.",
	"MX":          "Routes all mail for the domain to this server. If another server receives it today, that mail stops arriving there.",
}

func (d *Dashboard) verifyDomain(p *page) error {
	at := "/domains/" + p.id()
	v, err := d.api.VerifyDomain(p.ctx(), gen.VerifyDomainParams{ID: p.id()})
	if err != nil {
		return p.refused(at, err)
	}
	if v.Status == "verified" {
		return p.done(at, "Domain verified. You can send from it and create inboxes.")
	}
	return p.failed(at, "Not verified yet. DNS changes can take a while. Postroom also checks automatically.")
}

func (d *Dashboard) deleteDomain(p *page) error {
	id := p.id()
	_, err := d.api.DeleteDomain(p.ctx(), gen.DeleteDomainParams{ID: id})
	return p.result(err, "/domains/"+id, "/domains", "Domain deleted.")
}
