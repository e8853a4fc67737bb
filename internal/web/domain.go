package web

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) domainPages() {
	d.get("/domains", d.listDomains)
	d.post("/domains", d.createDomain)
	d.get("/domains/{id}", d.showDomain)
	d.post("/domains/{id}/verify", d.verifyDomain)
	d.post("/domains/{id}/delete", d.deleteDomain)
}

// domainList is the page of the account's domains, with the form for another.
type domainList struct {
	Domains []gen.Domain
	paging
	Name    string // that was tried
	Problem problem
}

func (d *Dashboard) listDomains(p *page) error {
	v, err := d.domainsOf(p)
	if err != nil {
		return err
	}
	return p.show("domains", v)
}

func (d *Dashboard) domainsOf(p *page) (domainList, error) {
	l, err := d.api.ListDomains(p.ctx(), gen.ListDomainsParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return domainList{}, err
	}
	return domainList{Domains: l.Data, paging: p.paging(l.Cursor)}, nil
}

func (d *Dashboard) createDomain(p *page) error {
	form, err := p.form()
	if err != nil {
		return err
	}
	name := strings.TrimSpace(form.Get("domain"))
	made, err := d.api.CreateDomain(p.ctx(), &gen.DomainCreate{Domain: name}, gen.CreateDomainParams{})
	if pr, ok := problemOf(err); ok {
		v, err := d.domainsOf(p)
		if err != nil {
			return err
		}
		v.Name, v.Problem = name, pr
		return p.showStatus(pr.status, "domains", v)
	}
	if err != nil {
		return err
	}
	return p.done("/domains/"+made.ID, made.Domain+" is added. Publish its records, and verify it then.")
}

func (d *Dashboard) showDomain(p *page) error {
	v, err := d.api.GetDomain(p.ctx(), gen.GetDomainParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.show("domain", struct {
		*gen.Domain
		Missing []string
		Uses    map[string]string
	}{v, missing(v.DNSRecords), recordUses})
}

// recordUses say what each kind of record is for.
var recordUses = map[string]string{
	"OWNERSHIP":   "Shows that the domain is yours.",
	"DKIM":        "Lets those who get your mail see that it is yours and was not changed.",
	"SPF":         "Says that this server may send in the name of your bounce address.",
	"RETURN_PATH": "Brings back to this server what cannot be delivered.",
	"DMARC":       "Says what others do with mail that only claims to be yours.",
	"MX":          "Brings mail for the domain to this server: needed for inboxes at it, not for sending. Leave it out if the domain has its mail elsewhere.",
}

// missing names the records that are not found, but those that a domain does
// without.
func missing(records []gen.DnsRecord) []string {
	var out []string
	for _, r := range records {
		if r.Status != "verified" && r.Required && !slices.Contains(out, r.Record) {
			out = append(out, r.Record)
		}
	}
	return out
}

func (d *Dashboard) verifyDomain(p *page) error {
	at := "/domains/" + p.r.PathValue("id")
	v, err := d.api.VerifyDomain(p.ctx(), gen.VerifyDomainParams{ID: p.r.PathValue("id")})
	if err != nil {
		return p.refused(at, err)
	}
	if v.Status == "verified" {
		return p.done(at, "The domain is verified. It can be sent from, and have inboxes.")
	}
	p.leaveNotice(notice{Text: "Not there yet. What is published may take a while to be seen; we also look by ourselves.", Bad: true})
	return p.goTo(at)
}

func (d *Dashboard) deleteDomain(p *page) error {
	id := p.r.PathValue("id")
	if _, err := d.api.DeleteDomain(p.ctx(), gen.DeleteDomainParams{ID: id}); err != nil {
		return p.refused("/domains/"+id, err)
	}
	return p.done("/domains", "The domain is deleted.")
}
