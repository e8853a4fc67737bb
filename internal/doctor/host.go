package doctor

import (
	"context"
	"net/netip"

	"github.com/postroom/postroom/internal/dnsrec"
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
	if v.cfg.Relay != nil {
		out = append(out, skipped("mail is sent through a relay").about("ptr", name))
	}
	return out
}

// address reports whether an address of the host is reachable from outside.
func (v *visit) address(text string) Result {
	addr, err := netip.ParseAddr(text)
	if err == nil {
		err = v.public.Check(addr)
	}
	if err != nil {
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
