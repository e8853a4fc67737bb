package doctor

import (
	"context"
	"net"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/internal/mtasts"
)

// mtaSTS checks the MTA-STS policy of the mail domain, if it has one (RFC 8461).
// Senders stop delivering if the server does not satisfy it.
func (v *visit) mtaSTS(ctx context.Context) []Result {
	domain := v.cfg.MailDomain
	if !v.ownDomainWanted() || IsLocal(domain) {
		return nil
	}
	texts, err := v.cfg.Resolver.LookupTXT(ctx, mtasts.RecordName(domain)+".")
	switch {
	case err != nil && !dns.IsNotFound(err):
		return one(warn("DNS lookup failed: %v", err).advise("retry in a few minutes"))
	case len(texts) == 0:
		return one(skipped("%s has no policy", domain))
	}
	if _, good := mtasts.ParseRecord(texts); !good {
		return one(fail("the record %s is not a valid policy record: %.100q", mtasts.RecordName(domain), texts).
			advise(`publish one: %s. 3600 IN TXT "v=STSv1; id=1"`, mtasts.RecordName(domain)))
	}
	fetcher := mtasts.NewFetcher(mtasts.FetchConfig{Dial: v.dialByResolver, RootCAs: v.cfg.RootCAs, Port: v.cfg.PolicyPort})
	policy, err := fetcher.Fetch(ctx, domain)
	if err != nil {
		return one(fail("cannot fetch the announced policy: %v", err).
			advise("serve it at https://mta-sts.%s/.well-known/mta-sts.txt with a certificate for that name, or remove %s", domain, mtasts.RecordName(domain)))
	}
	bad := fail
	if policy.Mode != mtasts.Enforce {
		bad = warn
	}
	switch {
	case policy.Mode == mtasts.None:
		return one(ok("the policy has mode none"))
	case !policy.Allows(v.cfg.Hostname):
		return one(bad("the policy (mode %s) does not name %s: senders do not deliver", policy.Mode, v.cfg.Hostname).
			advise("add to the policy: mx: %s, and change the id in %s", v.cfg.Hostname, mtasts.RecordName(domain)))
	case v.cfg.TLSCert == "" && !v.cfg.ACME:
		return one(bad("the policy (mode %s) requires TLS, but no certificate is set: senders do not deliver", policy.Mode).
			advise("set POSTROOM_TLS_CERT and POSTROOM_TLS_KEY to a certificate for %s", v.cfg.Hostname))
	}
	return one(ok("the policy (mode %s) names %s", policy.Mode, v.cfg.Hostname))
}

// dialByResolver connects to a name that it resolves with Config.Resolver.
func (v *visit) dialByResolver(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := v.cfg.Resolver.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		return nil, err
	}
	err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	for _, a := range addrs {
		conn, dialErr := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}
