package doctor

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
)

// inbound calls this host as others do: by its public name, on the port of SMTP.
func (v *visit) inbound(ctx context.Context) []Result {
	name := v.cfg.Hostname
	if IsLocal(name) {
		return one(skipped("%s is known to this machine alone", name))
	}
	addrs := v.addresses(ctx)
	if len(addrs) == 0 {
		return one(skipped("%s has no address to call", name))
	}
	if node, ready := v.node.get(ctx); ready && node.absent {
		return one(skipped("no node is running here").advise("start `postroom serve` and ask again"))
	}
	found := make([]*later[[]Result], len(addrs))
	for i, a := range addrs {
		found[i] = begin(func() []Result { return v.callHost(ctx, netip.AddrPortFrom(a, v.cfg.MXPort)) })
	}
	var out []Result
	for i, a := range addrs {
		r, ready := found[i].get(ctx)
		if !ready {
			r = one(fail("%s does not answer", a))
		}
		out = append(out, r...)
	}
	return out
}

// callHost calls this host at one address, and looks at the certificate that it
// offers: one of ACME, or one that was renewed and not read again, is in no file
// that could be looked at.
func (v *visit) callHost(ctx context.Context, at netip.AddrPort) []Result {
	found, err := v.prober.Host(ctx, v.cfg.Hostname, at)
	switch {
	case err != nil:
		return one(fail("mail cannot come in: %v", err).
			advise("let POSTROOM_SMTP listen on :%d, and let port %[1]d through firewall and router to this machine", at.Port()).
			advise("some routers do not lead back inside: to be sure, try from elsewhere: nc -v %s %d", v.cfg.Hostname, at.Port()))
	case !strings.EqualFold(found.Name, v.cfg.Hostname):
		return one(fail("at %s another server answers, which calls itself %q", at, found.Name).
			advise("stop that server, or publish the address of this host under %s", v.cfg.Hostname))
	case found.TLS == "":
		return one(warn("%s answers, without encryption", at).
			advise("set POSTROOM_TLS_CERT and POSTROOM_TLS_KEY, or POSTROOM_ACME_HOSTS: some senders give mail only to servers that encrypt"))
	}
	out := one(ok("%s answers, with %s", at, found.TLS))
	for _, r := range v.judge(found.Chain) {
		if r.Status != OK {
			out = append(out, r.about("inbound", at.String()))
		}
	}
	return out
}

// outbound calls the mail servers of a domain as the queue does.
func (v *visit) outbound(ctx context.Context) []Result {
	switch {
	case v.cfg.Relay != nil:
		return one(skipped("a relay sends the mail"))
	case v.cfg.To == "":
		return one(skipped("no server was named").advise("name a mailbox or a domain: postroom doctor --to ann@example.com"))
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
		return one(warn("%s takes no mail from us for %s: %s", found.Server, mailbox, found.Replied).
			advise("read what it says: a name that does not lead back (ptr), SPF, or the address's standing with blocklists"))
	case mailbox != "":
		return one(ok("%s would take mail for %s: %s", found.Server, mailbox, found.Replied))
	case found.TLS == "":
		return one(ok("%s answers, without encryption", found.Server))
	}
	return one(ok("%s answers, with %s", found.Server, found.TLS))
}

func cannotSend(err error) Result {
	at, _ := errors.AsType[*outbound.ProbeError](err)
	switch {
	case at == nil:
		return fail("no mail can go out: %v", err)
	case at.Stage == outbound.ProbeDNS:
		return fail("no mail server is to be found: %v", err).
			advise("look at the name, and at the DNS: POSTROOM_RESOLVER names another server")
	case errors.Is(err, netguard.ErrRefused):
		return fail("%v", err).
			advise("mail goes to public addresses alone; POSTROOM_MX_ALLOW opens others")
	case at.Stage == outbound.ProbeConnect:
		return fail("no connection: %v", err).
			advise("port 25 is closed to most cloud machines: ask the provider to open it, or set POSTROOM_RELAY to an SMTP server that takes your mail")
	case at.Stage == outbound.ProbeGreeting:
		return fail("the server does not talk to us: %v", err).
			advise("read what it says: it may refuse the address or the name of this host")
	}
	return warn("%v", err)
}

func (v *visit) relayName() string {
	if v.cfg.Relay == nil {
		return ""
	}
	return v.cfg.Relay.String()
}

// relay calls the relay and logs in, as before a mail.
func (v *visit) relay(ctx context.Context) []Result {
	if v.cfg.Relay == nil {
		return one(skipped("none is set: mail goes straight to the servers of its domains"))
	}
	found, err := v.prober.Relay(ctx, v.cfg.Relay)
	if err != nil {
		return one(relayFault(err))
	}
	secure, login := "in the clear", "without a name"
	if found.TLS != "" {
		secure = "with " + found.TLS
	}
	if found.Login {
		login = "with our name and password"
	}
	if found.TLS == "" && !v.cfg.Relay.Loopback() {
		return one(warn("%s takes us %s, %s", found.Server, login, secure).
			advise("use a relay with TLS, and tls=verify in POSTROOM_RELAY: others on the way can read the mail"))
	}
	return one(ok("%s takes us %s, %s", found.Server, login, secure))
}

func relayFault(err error) Result {
	r := fail("no mail can go out: %v", err)
	at, _ := errors.AsType[*outbound.ProbeError](err)
	if at == nil {
		return r
	}
	switch at.Stage {
	case outbound.ProbeDNS, outbound.ProbeConnect:
		return r.advise("look at host and port in POSTROOM_RELAY, and at the firewall on the way")
	case outbound.ProbeLogin:
		return r.advise("look at name and password in POSTROOM_RELAY; both are percent-encoded")
	case outbound.ProbeTLS:
		return r.advise("use the name that the relay's certificate is for in POSTROOM_RELAY, or say how it is protected: tls=verify, insecure, maybe or off")
	case outbound.ProbeGreeting, outbound.ProbeRecipient:
	}
	return r.advise("read what it says, or ask its operator: it may take mail from known addresses alone")
}
