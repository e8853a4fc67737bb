package doctor

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
)

// inbound connects to this host as other servers do: by its public name, on the
// SMTP port.
func (v *visit) inbound(ctx context.Context) []Result {
	name := v.cfg.Hostname
	if IsLocal(name) {
		return one(skipped("%s is only known on this machine", name))
	}
	addrs := v.addresses()
	if len(addrs) == 0 {
		return one(skipped("%s has no address", name))
	}
	return concurrently(addrs, func(a netip.Addr) []Result { return v.callHost(ctx, netip.AddrPortFrom(a, v.cfg.MXPort)) })
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
	switch {
	case v.cfg.Relay != nil:
		return one(skipped("mail is sent through a relay"))
	case v.cfg.To == "":
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

func (v *visit) relayName() string {
	if v.cfg.Relay == nil {
		return ""
	}
	return v.cfg.Relay.String()
}

// relay connects to the relay and authenticates, as before a delivery.
func (v *visit) relay(ctx context.Context) []Result {
	if v.cfg.Relay == nil {
		return one(skipped("no relay: mail goes to the MX hosts"))
	}
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
