package handlers

import (
	"context"
	"net/http"
	"sync"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// CreateDomain implements POST /v1/domains.
func (a *API) CreateDomain(ctx context.Context, req *gen.DomainCreate, _ gen.CreateDomainParams) (*gen.Domain, error) {
	name, err := dnsrec.CheckName(req.Domain)
	if err != nil {
		return nil, httpapi.Invalid("domain", "%s", err)
	}
	toAPI := a.domainToAPI
	d, err := a.cfg.Domains.Add(ctx, httpapi.Caller(ctx).AccountID, name, once(ctx, http.StatusCreated, "Domain", toAPI))
	return result(d, err, toAPI)
}

// GetDomain implements GET /v1/domains/{id}.
func (a *API) GetDomain(ctx context.Context, p gen.GetDomainParams) (*gen.Domain, error) {
	d, err := a.store.Domain(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return result(d, err, a.domainToAPI)
}

// ListDomains implements GET /v1/domains.
func (a *API) ListDomains(ctx context.Context, p gen.ListDomainsParams) (*gen.DomainList, error) {
	l, err := a.store.ListDomains(ctx, httpapi.Caller(ctx).AccountID, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.DomainList](l, err, a.domainToAPI)
}

// DeleteDomain implements DELETE /v1/domains/{id}.
func (a *API) DeleteDomain(ctx context.Context, p gen.DeleteDomainParams) (*gen.DeletedDomain, error) {
	err := a.store.DeleteDomain(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return &gen.DeletedDomain{Object: "domain", ID: p.ID, Deleted: true}, err
}

// VerifyDomain implements POST /v1/domains/{id}/verify.
func (a *API) VerifyDomain(ctx context.Context, p gen.VerifyDomainParams) (*gen.DomainVerification, error) {
	d, err := a.store.Domain(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	if err != nil {
		return nil, err
	}
	var host *dnsrec.Host
	var looking sync.WaitGroup
	looking.Go(func() { host = a.cfg.Domains.Host(ctx) })
	d, err = a.cfg.Domains.Check(ctx, d, true)
	looking.Wait()
	if err != nil {
		return nil, err
	}
	return &gen.DomainVerification{
		ID: d.ID, Status: string(d.Status), DNSRecords: recordsToAPI(a.cfg.Domains.Records(d)), SendingHost: hostToAPI(host),
	}, nil
}

func hostToAPI(h *dnsrec.Host) gen.NilSendingHost {
	if h == nil {
		return gen.NilSendingHost{Null: true}
	}
	return gen.NewNilSendingHost(gen.SendingHost{
		Name: h.Name, Status: string(domains.StatusOf(h.Finding)),
		Addresses: mapped(h.Addresses, func(a dnsrec.HostAddress) gen.SendingAddress {
			return gen.SendingAddress{Address: a.Address, Ptr: emptyIsNull(a.PTR), Status: string(domains.StatusOf(a.Finding))}
		}),
	})
}

func (a *API) domainToAPI(d store.Domain) *gen.Domain {
	return &gen.Domain{
		Object: "domain", ID: d.ID, Domain: d.Name, Status: string(d.Status), DNSRecords: recordsToAPI(a.cfg.Domains.Records(d)),
		CreatedAt: d.CreatedAt.Time, VerifiedAt: nilTime(d.VerifiedAt),
	}
}

func recordsToAPI(records []store.DomainRecord) []gen.DnsRecord {
	out := make([]gen.DnsRecord, 0, len(records))
	for _, r := range records {
		v := gen.DnsRecord{
			Record: r.Kind, Type: r.Type, Name: r.Name, Value: r.Value, TTL: r.TTL, Status: string(r.Status), Required: r.Required,
			Found:    append([]string{}, r.Found...),
			Priority: gen.NilInt{Null: true},
		}
		if r.Priority != nil {
			v.Priority = gen.NewNilInt(*r.Priority)
		}
		out = append(out, v)
	}
	return out
}
