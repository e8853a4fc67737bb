package mailauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

// Limits of RFC 7208 section 4.6.4.
const (
	maxSPFLookups = 10 // terms that cause lookups
	maxSPFVoids   = 2  // lookups without a result
	maxSPFNames   = 10 // MX hosts of one mx; PTR names
)

// SPF is the SPF result of one message. Result is None, Pass, Fail, SoftFail,
// Neutral, TempError or PermError.
type SPF struct {
	Result Result
	// Domain is the checked domain: that of the reverse-path, or the HELO name
	// if the reverse-path is null. It is in lower case and as A-labels; empty
	// if there is none.
	Domain string
	// HELO reports whether Domain is the HELO name.
	HELO bool
	// Explanation is the text that the domain publishes for a fail (RFC 7208
	// section 6.2), in ASCII; empty if there is none. The sender controls it,
	// so do not trust it.
	Explanation string
	// Reason explains a TempError or PermError.
	Reason string
}

// CheckHost evaluates SPF (check_host, RFC 7208) for a message from the client
// ip. helo is the client's HELO name and mailFrom the reverse-path. For a null
// reverse-path it checks postmaster@helo (section 2.4). It reports errors in
// Result and Reason.
func CheckHost(ctx context.Context, r dns.Resolver, ip netip.Addr, helo, mailFrom string) SPF {
	return checkHost(ctx, r, time.Now, ip, helo, mailFrom)
}

func checkHost(ctx context.Context, r dns.Resolver, now func() time.Time, ip netip.Addr, helo, mailFrom string) SPF {
	out := SPF{HELO: mailFrom == "", Result: None}
	sender := mailFrom
	if out.HELO {
		sender = "postmaster@" + helo
	}
	local, domain := cutAddress(sender)
	local = cmp.Or(local, "postmaster")
	domain, ok := asciiDomain(domain)
	if !ok || !strings.Contains(domain, ".") || strings.HasPrefix(domain, "[") {
		return out
	}
	out.Domain = domain
	c := spfCheck{
		resolver: r, now: now, ip: ip.Unmap().WithZone(""), helo: helo, local: local, senderDomain: domain,
	}
	if !c.ip.IsValid() {
		return out
	}
	var err error
	out.Result, err = c.evaluate(ctx, domain)
	if err != nil {
		out.Reason = err.Error()
	}
	if out.Result == Fail {
		out.Explanation = c.explain(ctx)
	}
	return out
}

// cutAddress splits an address at its last "@". Without one, all of it is the
// domain.
func cutAddress(email string) (local, domain string) {
	at := strings.LastIndexByte(email, '@')
	return email[:max(at, 0)], email[at+1:]
}

// spfCheck is one run of check_host, including the records that it includes.
type spfCheck struct {
	resolver     dns.Resolver
	now          func() time.Time
	ip           netip.Addr
	helo         string
	local        string // of the sender's address
	senderDomain string

	lookups, voids int
	names          []string // validated names of ip
	named          bool     // names was looked up

	// Explanation of the matching record, and the domain of that record.
	exp       *macroString
	expDomain string
}

// spfError is an error that determines the result.
type spfError struct {
	result Result
	reason string
}

func (e *spfError) Error() string { return e.reason }

func permError(format string, args ...any) error {
	return &spfError{PermError, fmt.Sprintf(format, args...)}
}

// tempError returns a TempError for a failed lookup. It leaves out the DNS
// error, which may name our servers.
func tempError(name string) error {
	return &spfError{TempError, "the DNS did not respond for " + name}
}

// evaluate runs check_host for a valid domain. The error explains a TempError
// or PermError.
func (c *spfCheck) evaluate(ctx context.Context, domain string) (Result, error) {
	result, err := c.follow(ctx, domain)
	if e, ok := errors.AsType[*spfError](err); ok {
		return e.result, err
	}
	return result, err
}

// follow evaluates the record of domain, following redirects.
func (c *spfCheck) follow(ctx context.Context, domain string) (Result, error) {
	rec, ok, err := c.record(ctx, domain)
	if err != nil || !ok {
		return None, err
	}
	for {
		for _, m := range rec.mechanisms {
			matched, err := c.match(ctx, m, domain)
			if err != nil {
				return "", err
			}
			if matched {
				c.exp, c.expDomain = rec.exp, domain
				return m.qualifier, nil
			}
		}
		if rec.redirect == nil {
			return Neutral, nil
		}
		if rec, domain, err = c.redirect(ctx, *rec.redirect, domain); err != nil {
			return "", err
		}
	}
}

// redirect returns the record that replaces the record of domain (RFC 7208
// section 6.1).
func (c *spfCheck) redirect(ctx context.Context, to macroString, domain string) (*spfRecord, string, error) {
	if err := c.spend("redirect"); err != nil {
		return nil, "", err
	}
	next, ok, err := c.target(ctx, to, domain)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		return nil, "", permError("%s redirects to a name that is not a domain", domain)
	}
	rec, ok, err := c.record(ctx, next)
	if err == nil && !ok {
		err = permError("redirect of %s to %s, which has no SPF record", domain, next)
	}
	return rec, next, err
}

// record returns the SPF record of domain, or false if there is none (RFC 7208
// section 4.5).
func (c *spfCheck) record(ctx context.Context, domain string) (rec *spfRecord, ok bool, err error) {
	texts, err := lookupTXT(ctx, c.resolver, domain)
	if err != nil {
		return nil, false, tempError(domain)
	}
	texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return !isSPFRecord(s) })
	switch len(texts) {
	case 0:
		return nil, false, nil
	case 1:
	default:
		return nil, false, permError("%s has several SPF records", domain)
	}
	if rec, err = parseSPF(texts[0]); err != nil {
		return nil, false, permError("SPF record of %s: %s", domain, err)
	}
	return rec, true, nil
}

// spend counts a term that causes lookups.
func (c *spfCheck) spend(term string) error {
	if c.lookups++; c.lookups > maxSPFLookups {
		return permError("more than %d lookups, at %s", maxSPFLookups, term)
	}
	return nil
}

// void counts a lookup without a result.
func (c *spfCheck) void(results int) error {
	if results > 0 {
		return nil
	}
	if c.voids++; c.voids > maxSPFVoids {
		return permError("more than %d lookups without a result", maxSPFVoids)
	}
	return nil
}
