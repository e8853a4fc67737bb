package doctor

import (
	"crypto/x509"
	"strings"
	"time"
)

// renewBy is how long before its expiry a certificate should be renewed.
const renewBy = 14 * 24 * time.Hour

// checkChain checks a certificate chain that starts with the host's own, as a strict sender
// does: names, validity period and chain.
func (v *visit) checkChain(chain []*x509.Certificate) []Result {
	leaf, now := chain[0], v.cfg.Now()
	var out []Result
	if now.Before(leaf.NotBefore) {
		out = append(out, fail("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339)).advise("check the clock of this machine"))
	} else {
		out = append(out, v.lasts(leaf.NotAfter, ""))
	}
	if err := leaf.VerifyHostname(v.cfg.Hostname); err != nil {
		out = append(out, fail("the certificate is for %q, but this host is %s", strings.Join(leaf.DNSNames, ", "), v.cfg.Hostname).
			advise("get one for %s, or set POSTROOM_HOSTNAME to a name of the certificate", v.cfg.Hostname))
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	// lasts has checked the period; verify the chain at a time within it.
	_, err := leaf.Verify(x509.VerifyOptions{Roots: v.cfg.RootCAs, Intermediates: between, CurrentTime: leaf.NotAfter.Add(-time.Second)})
	if err != nil {
		out = append(out, warn("senders that verify certificates (MTA-STS) do not trust it: %v", err).
			advise("use a publicly trusted authority, and put the whole chain into the file"))
	}
	return out
}

// lasts reports until when a certificate is valid.
func (v *visit) lasts(until time.Time, of string) Result {
	left := until.Sub(v.cfg.Now())
	at := until.UTC().Format(time.RFC3339)
	what := strings.TrimSpace("the certificate " + of)
	switch {
	case left <= 0:
		return fail("%s expired at %s", what, at).advise("renew it, and check why it was not renewed")
	case left < renewBy:
		return warn("%s expires at %s, in %d days", what, at, int(left.Hours()/24)).advise("renew it, and check why it was not renewed")
	}
	return ok("%s is valid until %s", what, at)
}
