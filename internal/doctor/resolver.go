package doctor

import (
	"context"
	"errors"
	"net"

	"github.com/postroom/postroom/internal/dns"
)

// resolver asks the resolver for what every one can know: without answers no
// mail finds its way. An install that is tried out, on the system's, needs none.
func (v *visit) resolver(ctx context.Context) []Result {
	if v.cfg.ResolverAddr == "" && IsLocal(v.cfg.MailDomain) {
		return one(skipped("an install that is tried out asks nobody"))
	}
	_, err := v.cfg.Resolver.LookupTXT(ctx, "com.")
	if err == nil || dns.IsNotFound(err) { // a reply that the name does not exist is enough
		return one(ok("it answers"))
	}
	why, who := err.Error(), "the system's resolver"
	if e, is := errors.AsType[*net.DNSError](err); is {
		why = e.Err // the rest names the system's, whoever was asked
	}
	if v.cfg.ResolverAddr != "" {
		who = v.cfg.ResolverAddr
	}
	return one(fail("%s does not answer: %s", who, why).
		advise("set POSTROOM_RESOLVER to the host:port of a resolver that this machine reaches, or leave it out to use the system's"))
}
