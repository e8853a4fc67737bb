package doctor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/store"
)

// wanted is an expected record, and the consequence if it is missing.
type wanted struct {
	dnsrec.Record
	missing Status
	why     string
}

func (v *visit) look(ctx context.Context, domain string, records []wanted) []Result {
	return concurrently(records, func(w wanted) []Result {
		var res Result
		switch found := dnsrec.Check(ctx, v.cfg.Resolver, []dnsrec.Record{w.Record})[0]; found.Finding {
		case dnsrec.Found:
			res = ok("%s %s found", w.Name, w.Type)
		case dnsrec.Missing:
			res = Result{Status: w.missing, Saw: fmt.Sprintf("%s %s is missing: %s. DNS has %s", w.Name, w.Type, w.why, saw(found))}.
				advise("publish: %s", w.ZoneLine())
		case dnsrec.Unknown:
			res = warn("DNS lookup failed for %s %s: %s", w.Name, w.Type, saw(found)).
				advise("retry in a few minutes; if it persists, check the name servers of the domain and POSTROOM_RESOLVER")
		}
		return one(res.about(strings.ToLower(string(w.Kind)), domain))
	})
}

// saw describes what DNS has instead of a record.
func saw(r dnsrec.Result) string {
	switch {
	case len(r.Has) > 0:
		return fmt.Sprintf("%q", r.Has)
	case r.Err != nil:
		return r.Err.Error()
	}
	return "nothing"
}

// mailDomain checks the records of the installation's mail domain.
func (v *visit) mailDomain(ctx context.Context) []Result {
	domain := v.cfg.MailDomain
	if IsLocal(domain) {
		return one(skipped("%s is only known on this machine", domain).
			advise("to exchange mail with other servers, set POSTROOM_MAIL_DOMAIN to your domain and POSTROOM_HOSTNAME to the public name of this host"))
	}
	records := []wanted{
		{dnsrec.Record{Kind: dnsrec.MX, Type: "MX", Name: domain, Value: v.cfg.Hostname, Priority: 10}, Fail, "mail to its inboxes does not reach this server"},
		{dnsrec.Record{Kind: dnsrec.DMARC, Type: "TXT", Name: "_dmarc." + domain, Value: "v=DMARC1; p=quarantine"}, Warn, "large receivers require a policy"},
	}
	if s := v.cfg.Store; s != nil {
		keys, err := s.InstallKeys(ctx, domain)
		if err != nil {
			return one(fail("cannot read the keys: %v", err).about("dkim", domain))
		}
		records = append(records, keyRecords(domain, keys)...)
	}
	return v.look(ctx, domain, records)
}

// keyRecords returns the records of active and pending DKIM keys.
func keyRecords(domain string, keys []store.DomainKey) []wanted {
	var all []wanted
	for _, k := range keys {
		if k.RetiredAt != nil {
			continue
		}
		w := wanted{
			Record:  dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public}.Record(domain),
			missing: Warn, why: "it does not sign until it is published",
		}
		if k.Signs() {
			w.missing, w.why = Fail, "signatures with this key do not verify"
			if k.Algorithm != "rsa" {
				w.missing = Warn
			}
		}
		all = append(all, w)
	}
	return all
}

// accountDomains checks the records of the selected domain, or of verified domains, the
// newest 20.
func (v *visit) accountDomains(ctx context.Context) []Result {
	s := v.cfg.Store
	if s == nil {
		return nil // reported by another check
	}
	found, err := s.FindDomains(ctx, v.cfg.Domain, 20)
	switch {
	case err != nil:
		return one(fail("cannot read the domains of the accounts: %v", err))
	case len(found) == 0 && v.cfg.Domain != "":
		return one(fail("no account has the domain %s, and the mail domain is %s", v.cfg.Domain, v.cfg.MailDomain).
			advise("add it: POST /v1/domains with {%q: %q}", "domain", v.cfg.Domain))
	}
	return concurrently(found, func(d store.Domain) []Result { return v.accountDomain(ctx, s, d) })
}

func (v *visit) accountDomain(ctx context.Context, s *store.Store, d store.Domain) []Result {
	owned, err := domains.New(domains.Config{
		Store: s, Resolver: v.cfg.Resolver, MailDomain: v.cfg.MailDomain, Hostname: v.cfg.Hostname,
		TokenKey: make([]byte, 32), // no token is created
		NewKeys:  queue.NewKeys, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return one(fail("%v", err).about("dns", d.Name))
	}
	var records []wanted
	for _, r := range owned.Published(d) {
		w := wanted{Record: r, missing: Warn, why: "it improves deliverability"}
		switch {
		case r.Required:
			w.missing, w.why = Fail, "without it the domain becomes failed after 72 hours"
		case r.Kind == dnsrec.MX:
			w.missing, w.why = Skipped, "the domain does not receive mail here, which is correct if it only sends"
		}
		records = append(records, w)
	}
	out := v.look(ctx, d.Name, records)
	if d.Status != store.DomainVerified {
		out = append(out, warn("the domain is %s: it cannot send or receive", d.Status).
			advise("publish the required records, then call POST /v1/domains/%s/verify", d.ID).about("dns", d.Name))
	}
	return out
}

// spf evaluates, as a receiver does, whether this host may send for the mail
// domain (RFC 7208).
func (v *visit) spf(ctx context.Context) (out []Result) {
	domain := v.cfg.MailDomain
	publish := dnsrec.Record{Type: "TXT", Name: domain, Value: "v=spf1 mx -all"}.ZoneLine()
	if !IsLocal(domain) {
		for _, a := range v.addresses() {
			out = append(out, spfResult(mailauth.CheckHost(ctx, v.cfg.Resolver, a, v.cfg.Hostname, "postmaster@"+domain), a, publish))
		}
	}
	return out
}

func spfResult(said mailauth.SPF, addr netip.Addr, publish string) Result {
	switch said.Result {
	case mailauth.Pass:
		return ok("%s may send for %s", addr, said.Domain)
	case mailauth.None:
		return fail("%s has no SPF record", said.Domain).advise("publish: %s", publish)
	case mailauth.TempError:
		return warn("DNS lookup of SPF failed: %s", said.Reason).advise("retry in a few minutes")
	default:
		why := cmp.Or(said.Reason, fmt.Sprintf("mail from %s is not its own", addr))
		version := 6
		if addr.Is4() {
			version = 4
		}
		return fail("the SPF record of %s returns %s: %s", said.Domain, said.Result, why).
			advise("add this host: ip%d:%s, or publish: %s", version, addr, publish)
	}
}
