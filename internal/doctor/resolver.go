package doctor

import (
	"context"
	"errors"
	"net"

	"github.com/postroom/postroom/internal/dns"
)

// resolver checks that the resolver responds to a public query. A test
// installation with the system's resolver does not need it.
func (v *visit) resolver(ctx context.Context) []Result {
	if v.cfg.ResolverAddr == "" && IsLocal(v.cfg.MailDomain) {
		return one(skipped("not needed for a local test installation"))
	}
	_, err := v.cfg.Resolver.LookupTXT(ctx, "com.")
	if err == nil || dns.IsNotFound(err) { // a reply that the name does not exist is enough
		return one(ok("it responds"))
	}
	why, who := err.Error(), "the system's resolver"
	if e, is := errors.AsType[*net.DNSError](err); is {
		why = e.Err // the full error names the system's resolver, whichever was asked
	}
	if v.cfg.ResolverAddr != "" {
		who = v.cfg.ResolverAddr
	}
	return one(fail("%s does not respond: %s", who, why).
		advise("set POSTROOM_RESOLVER to the host:port of a resolver that this machine can reach, or remove it to use the system resolver"))
}
