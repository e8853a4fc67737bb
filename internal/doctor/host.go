package doctor

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/postroom/postroom/internal/dnsrec"
)

// quiet is the log of what tells by its results.
var quiet = slog.New(slog.DiscardHandler)

// hostCheck looks at the addresses of the host and at the names that these lead
// to: many receivers take mail only from an address whose name leads back.
func (v *visit) hostCheck(ctx context.Context) []Result {
	name := v.cfg.Hostname
	if IsLocal(name) {
		return one(skipped("%s is known to this machine alone", name))
	}
	h, ready := v.host.get(ctx)
	switch {
	case !ready, len(h.Addresses) == 0 && h.Finding == dnsrec.Unknown:
		return one(warn("the DNS does not answer for %s", name).advise("look at the name servers of the domain and at POSTROOM_RESOLVER"))
	case len(h.Addresses) == 0:
		return one(fail("%s has no address", name).
			advise("publish: %s. %d IN A with the public address of this host, and AAAA if it has one of IPv6", name, dnsrec.TTL))
	}
	var out []Result
	for _, a := range h.Addresses {
		out = append(out, v.address(a.Address))
		if v.cfg.Relay == nil {
			out = append(out, reverse(name, a).about("ptr", a.Address))
		}
	}
	if v.cfg.Relay != nil {
		out = append(out, skipped("a relay sends the mail, from addresses of its own").about("ptr", name))
	}
	return out
}

// address says whether others can reach an address of the host.
func (v *visit) address(text string) Result {
	addr, err := netip.ParseAddr(text)
	if err == nil {
		err = v.public.Check(addr)
	}
	if err != nil {
		return warn("%s leads to %s, which others cannot reach", v.cfg.Hostname, text).
			advise("publish the public address of this host under %s", v.cfg.Hostname)
	}
	return ok("%s leads to %s", v.cfg.Hostname, text)
}

func reverse(name string, a dnsrec.HostAddress) Result {
	ask := "have whoever gives you the address set its reverse name (PTR) to " + name
	switch {
	case a.Finding == dnsrec.Found:
		return ok("%s leads to %s, and that back", a.Address, a.PTR)
	case a.Finding == dnsrec.Unknown:
		return warn("the DNS does not answer for the name of %s", a.Address).advise("ask again in some minutes")
	case a.PTR == "":
		return fail("%s has no name: large receivers refuse its mail", a.Address).advise("%s", ask)
	}
	return fail("%s is called %s, which does not lead back to it: large receivers refuse its mail", a.Address, a.PTR).advise("%s", ask)
}
