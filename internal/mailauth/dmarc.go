package mailauth

import (
	"context"

	"github.com/postroom/postroom/internal/mail/mime"
)

// maxAuthors is the maximum number of addresses in From. DMARC is not evaluated
// for a message with more.
const maxAuthors = 100

// DMARC is the DMARC result of one message (RFC 9989). Result is Pass if SPF or
// a DKIM signature passed for the domain of the From address, or for its
// organization if the record allows that. It is Fail if neither did, None if
// the domain has no record or From does not name exactly one domain, and
// TempError if a DNS lookup failed.
type DMARC struct {
	Result Result
	// Domain is the domain of the From field, in lower case and as A-labels;
	// empty if From does not name exactly one.
	Domain string
	// Policy is what the owner of Domain requests for this message if Result is
	// Fail: "none", "quarantine" or "reject". Postroom reports it but does not
	// act on it.
	Policy string
	// Record is the domain whose record applies; empty without a record.
	Record string
	// Reason explains a None or TempError.
	Reason string
}

// author returns the domain of the From address, or the reason why there is
// none. RFC 9989 exempts messages whose From names several domains.
func author(fields []mime.Field) (domain, reason string) {
	seen := 0
	for _, f := range fields {
		if !f.Is("from") {
			continue
		}
		list, more := f.Addresses(maxAuthors - seen)
		if seen += len(list); more {
			return "", "From has too many addresses"
		}
		for _, a := range list {
			local, host := cutAddress(a.Email)
			host, ok := asciiDomain(host)
			switch {
			case !ok || local == "":
				return "", "From has an address without a domain"
			case domain != "" && host != domain:
				return "", "From names several domains"
			}
			domain = host
		}
	}
	if domain == "" {
		return "", "From has no address"
	}
	return domain, ""
}

// dmarcCheck is the DMARC evaluation of one message.
type dmarcCheck struct {
	walker walker
	domain string
	record dmarcRecord
	found  bool
	err    error
}

// discover looks up the policy of the author's domain.
func (c *dmarcCheck) discover(ctx context.Context) {
	c.record, c.found, c.err = c.walker.policy(ctx, c.domain)
}

// evaluate returns the result. Call discover first.
func (c *dmarcCheck) evaluate(ctx context.Context, spf SPF, signatures []Signature) DMARC {
	out := DMARC{Domain: c.domain, Result: None}
	switch {
	case c.err != nil:
		out.Result, out.Reason = TempError, "the DNS did not respond for the policy"
		return out
	case !c.found:
		out.Reason = "the domain has no record"
		return out
	}
	out.Record = c.record.domain
	if c.record.useless {
		out.Reason = "the record asks for nothing that can be read"
		return out
	}
	out.Result = c.align(ctx, spf, signatures)
	switch out.Result {
	case TempError:
		out.Reason = "the DNS did not respond for a signature or host that might align"
	case Fail:
		out.Policy = c.policy(ctx)
	}
	return out
}

// align looks for an SPF or DKIM pass that is aligned with the author's domain.
// It returns TempError if a DNS failure may have prevented the pass.
func (c *dmarcCheck) align(ctx context.Context, spf SPF, signatures []Signature) Result {
	result := Fail
	consider := func(found Result, domain string, strict bool) {
		if result == Pass || domain == "" || found != Pass && found != TempError {
			return
		}
		same, err := domain == c.domain, error(nil)
		if !same && !strict {
			same, err = c.walker.sameOrganization(ctx, c.domain, domain)
		}
		switch {
		case same && found == Pass:
			result = Pass
		case same || err != nil:
			result = TempError
		}
	}
	consider(spf.Result, spf.Domain, c.record.strictSPF)
	for _, s := range signatures {
		if s.SignsFrom {
			consider(s.Result, s.Domain, c.record.strictDKIM)
		}
	}
	return result
}

// policy returns the requested policy (RFC 9989 section 4.10.1). It checks
// whether a subdomain exists only if that matters, and assumes that it does if
// the lookup fails.
func (c *dmarcCheck) policy(ctx context.Context) string {
	rec := c.record
	policy := rec.policy
	if rec.domain != c.domain {
		if rec.subdomains != "" {
			policy = rec.subdomains
		}
		if rec.missing != "" && rec.missing != policy && !c.exists(ctx) {
			policy = rec.missing
		}
	}
	if rec.testing {
		return lowered(policy)
	}
	return policy
}

// exists reports whether the author's domain has an address or an MX record, or
// the lookup fails.
func (c *dmarcCheck) exists(ctx context.Context) bool {
	r := c.walker.resolver
	if records, err := lookupMX(ctx, r, c.domain); err != nil || len(records) > 0 {
		return true
	}
	for _, network := range []string{"ip4", "ip6"} {
		if addrs, err := lookupIP(ctx, r, network, c.domain); err != nil || len(addrs) > 0 {
			return true
		}
	}
	return false
}
