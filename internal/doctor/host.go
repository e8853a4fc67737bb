package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
)

// hostCheck checks the host's addresses and their reverse DNS. Many receivers
// accept mail only from addresses whose name resolves back.
func (v *visit) hostCheck(context.Context) []Result {
	name := v.cfg.Hostname
	if IsLocal(name) {
		return one(skipped("%s is only known on this machine", name))
	}
	h := v.host()
	switch {
	case len(h.Addresses) == 0 && h.Finding == dnsrec.Unknown:
		return one(warn("DNS lookup failed for %s", name).advise("check the name servers of the domain and POSTROOM_RESOLVER"))
	case len(h.Addresses) == 0:
		return one(fail("%s has no address", name).
			advise("publish: %s. %d IN A with the public IPv4 address of this host, and AAAA with its IPv6 address if it has one", name, dnsrec.TTL))
	}
	var out []Result
	for _, a := range h.Addresses {
		out = append(out, v.address(a.Address))
		if v.cfg.Relay == nil {
			out = append(out, reverse(name, a).about("ptr", a.Address))
		}
	}
	return out
}

// address reports whether an address of the host is reachable from outside.
func (v *visit) address(text string) Result {
	if addr, _ := netip.ParseAddr(text); v.public.Check(addr) != nil {
		return warn("%s resolves to %s, which is not a public address", v.cfg.Hostname, text).
			advise("publish the public address of this host under %s", v.cfg.Hostname)
	}
	return ok("%s resolves to %s", v.cfg.Hostname, text)
}

func reverse(name string, a dnsrec.HostAddress) Result {
	ask := "ask the provider of the address to set its PTR record to " + name
	switch {
	case a.Finding == dnsrec.Found:
		return ok("%s resolves to %s and back", a.Address, a.PTR)
	case a.Finding == dnsrec.Unknown:
		return warn("DNS lookup failed for the PTR record of %s", a.Address).advise("retry in a few minutes")
	case a.PTR == "":
		return fail("%s has no PTR record: large receivers refuse its mail", a.Address).advise("%s", ask)
	}
	return fail("%s has the PTR record %s, which does not resolve back: large receivers refuse its mail", a.Address, a.PTR).advise("%s", ask)
}

// inbound connects to this host as other servers do: by its public name, on the
// SMTP port.
func (v *visit) inbound(ctx context.Context) []Result {
	return concurrently(v.addresses(), func(a netip.Addr) []Result { return v.callHost(ctx, netip.AddrPortFrom(a, v.cfg.MXPort)) })
}

// callHost connects to one address of this host and checks the certificate that
// it presents.
func (v *visit) callHost(ctx context.Context, at netip.AddrPort) []Result {
	found, err := v.prober.Host(ctx, v.cfg.Hostname, at)
	switch {
	case err != nil:
		return one(fail("cannot receive mail: %v", err).
			advise("run `postroom serve` with POSTROOM_SMTP=:%d, and open port %[1]d in the firewall and router", at.Port()).
			advise("some routers do not support this test from inside; test from another network: nc -v %s %d", v.cfg.Hostname, at.Port()))
	case !strings.EqualFold(found.Name, v.cfg.Hostname):
		return one(fail("at %s another server responds as %q", at, found.Name).
			advise("stop that server, or publish the address of this host under %s", v.cfg.Hostname))
	case found.TLS == "":
		return one(warn("%s responds, without encryption", at).
			advise("set POSTROOM_TLS_CERT and POSTROOM_TLS_KEY, or POSTROOM_ACME_HOSTS: some senders require encryption"))
	}
	out := one(ok("%s responds, with %s", at, found.TLS))
	for _, r := range v.checkChain(found.Chain) {
		if r.Status != OK {
			out = append(out, r.about("inbound", at.String()))
		}
	}
	return out
}

// outbound connects to the mail servers of a domain as the queue does.
func (v *visit) outbound(ctx context.Context) []Result {
	if v.cfg.To == "" {
		return one(skipped("no server given").advise("give an address or domain: postroom doctor --to ann@example.com"))
	}
	domain, mailbox := v.cfg.To, ""
	if at := strings.LastIndexByte(v.cfg.To, '@'); at >= 0 {
		domain, mailbox = v.cfg.To[at+1:], v.cfg.To
	}
	found, err := v.prober.Domain(ctx, domain, mailbox)
	switch {
	case err != nil:
		return one(cannotSend(err))
	case found.Refused:
		return one(warn("%s refuses our mail for %s: %s", found.Server, mailbox, found.Replied).
			advise("see the reply; common causes are the PTR record, SPF and blocklists"))
	case mailbox != "":
		return one(ok("%s accepts mail for %s: %s", found.Server, mailbox, found.Replied))
	case found.TLS == "":
		return one(ok("%s responds, without encryption", found.Server))
	}
	return one(ok("%s responds, with %s", found.Server, found.TLS))
}

func cannotSend(err error) Result {
	r := fail("cannot send mail: %v", err)
	at, _ := errors.AsType[*outbound.ProbeError](err)
	switch {
	case errors.Is(err, netguard.ErrRefused):
		return r.advise("mail is only sent to public addresses; POSTROOM_MX_ALLOW allows others")
	case at == nil:
		return r
	case at.Stage == outbound.ProbeDNS:
		return r.advise("check the name and DNS; POSTROOM_RESOLVER sets another DNS server")
	case at.Stage == outbound.ProbeConnect:
		return r.advise("most cloud providers block port 25: ask the provider to open it, or set POSTROOM_RELAY to an SMTP relay")
	}
	return r.advise("see the reply; it may refuse the address or the name of this host")
}

// relay connects to the relay and authenticates, as before a delivery.
func (v *visit) relay(ctx context.Context) []Result {
	found, err := v.prober.Relay(ctx, v.cfg.Relay)
	if err != nil {
		return one(fail("cannot send mail: %v", err).
			advise("check host, port, user name and password in POSTROOM_RELAY (both percent-encoded), and the firewall").
			advise("if TLS fails, use the host name of the relay's certificate, or set tls=verify, insecure, maybe or off"))
	}
	if found.TLS == "" && !v.cfg.Relay.Loopback() {
		return one(warn("%s accepts us, without encryption: the mail can be read in transit", found.Server).
			advise("use a relay with TLS, and tls=verify in POSTROOM_RELAY"))
	}
	return one(ok("%s accepts us", found.Server))
}

// renewBy is how long before its expiry a certificate should be renewed.
const renewBy = 14 * 24 * time.Hour

// checkChain checks a certificate chain that starts with the host's own, as a strict sender
// does: names, validity period and chain.
func (v *visit) checkChain(chain []*x509.Certificate) []Result {
	leaf := chain[0]
	out := one(v.lasts(leaf.NotAfter, ""))
	if err := leaf.VerifyHostname(v.cfg.Hostname); err != nil {
		out = append(out, fail("the certificate is for %q, but this host is %s", strings.Join(leaf.DNSNames, ", "), v.cfg.Hostname).
			advise("get one for %s, or set POSTROOM_HOSTNAME to a name of the certificate", v.cfg.Hostname))
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	at := time.Now()
	if at.After(leaf.NotAfter) { // lasts has said so; the rest may be right
		at = leaf.NotAfter
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: v.cfg.RootCAs, Intermediates: between, CurrentTime: at})
	if err != nil {
		out = append(out, warn("senders that verify certificates (MTA-STS) do not trust it: %v", err).
			advise("use a publicly trusted authority, and put the whole chain into the file"))
	}
	return out
}

// lasts reports until when a certificate is valid.
func (v *visit) lasts(until time.Time, of string) Result {
	left := until.Sub(time.Now())
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

// api requests the API at its public URL, and checks its certificate.
func (v *visit) api(ctx context.Context) []Result {
	if v.cfg.BaseURL == "" {
		return one(skipped("POSTROOM_BASE_URL is not set"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(v.cfg.BaseURL, "/")+"/health", nil)
	if err != nil {
		return one(fail("%v", err).advise("check POSTROOM_BASE_URL"))
	}
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: v.cfg.RootCAs, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return one(fail("clients cannot reach the API: %v", err).
			advise("check that `postroom serve` runs, and the proxy, its certificate and POSTROOM_BASE_URL"))
	}
	_ = res.Body.Close() // it was not read
	switch {
	case res.StatusCode != http.StatusOK:
		return one(fail("%s returned %s", req.URL, res.Status).advise("check the log of the node, and the proxy"))
	case res.TLS != nil && len(res.TLS.PeerCertificates) > 0:
		return one(v.lasts(res.TLS.PeerCertificates[0].NotAfter, "of "+v.cfg.BaseURL))
	}
	return one(ok("it responds"))
}
