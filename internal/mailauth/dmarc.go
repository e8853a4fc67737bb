package mailauth

import (
	"context"

	"github.com/postroom/postroom/internal/mail/mime"
)

// maxAuthors is how many addresses in From are looked at. A mail with more has
// no verdict.
const maxAuthors = 100

// DMARC says whether the domain of the address in the header From stands behind
// the mail: Pass when SPF or a DKIM signature that passed is of that domain, or
// of its organization where the domain's record allows that; Fail when neither
// is; None when the domain has no record, or when there is no one domain to
// ask; TempError when the DNS kept the answer.
type DMARC struct {
	Result Result
	// Domain is that of the header From, lower case, A-labels; empty when there
	// is no one domain.
	Domain string
	// Policy is what the owner of Domain asks to be done with this mail, of a
	// Fail: "none", "quarantine" or "reject". Postroom shows it and does none.
	Policy string
	// Record is the domain whose record applies; empty without one.
	Record string
	// Reason says why Result is None or TempError.
	Reason string
}

// author returns the domain that a mail is from. RFC 9989 exempts mail whose
// From names several.
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
		return "", "there is no address in From"
	}
	return domain, ""
}

// dmarcCheck is the evaluation for one mail.
type dmarcCheck struct {
	walker walker
	domain string
	record dmarcRecord
	found  bool
	err    error
}

// discover looks for the policy of the author's domain.
func (c *dmarcCheck) discover(ctx context.Context) {
	c.record, c.found, c.err = c.walker.policy(ctx, c.domain)
}

// judge gives the verdict, after discover.
func (c *dmarcCheck) judge(ctx context.Context, spf SPF, signatures []Signature) DMARC {
	out := DMARC{Domain: c.domain, Result: None}
	switch {
	case c.err != nil:
		out.Result, out.Reason = TempError, "no answer from the DNS for the policy"
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
		out.Reason = "no answer from the DNS for what might align"
	case Fail:
		out.Policy = c.policy(ctx)
	}
	return out
}

// align looks for something that passed and is of the author's domain. What the
// DNS kept from passing may have been it.
func (c *dmarcCheck) align(ctx context.Context, spf SPF, signatures []Signature) Result {
	result := Fail
	consider := func(verdict Result, domain string, strict bool) {
		if result == Pass || domain == "" || verdict != Pass && verdict != TempError {
			return
		}
		same, err := domain == c.domain, error(nil)
		if !same && !strict {
			same, err = c.walker.sameOrganization(ctx, c.domain, domain)
		}
		switch {
		case same && verdict == Pass:
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

// policy is what the record asks to be done (RFC 9989 section 4.10.1). Whether
// a subdomain exists is asked only when that makes a difference, and trouble
// with the answer counts as a yes.
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

// exists reports whether the author's domain has an address or takes mail.
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
