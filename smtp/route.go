package smtp

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"syscall"

	"github.com/postroom/postroom/internal/mtasts"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

const (
	// maxTries is how many addresses are called in one attempt.
	maxTries = 5
	// maxHosts is how many MX hosts are looked up in one attempt.
	maxHosts = 20
)

// route returns the servers to try, in order, and what the domain asks of them,
// or the verdict when there are none. The relay is the operator's own, and under
// nobody's policy.
func (q *Queue) route(ctx context.Context, to dest) ([]endpoint, mtasts.Policy, *verdict) {
	if to.kind == toRelay {
		return []endpoint{q.relay.at}, mtasts.Policy{}, nil
	}
	hosts, v := q.hosts(ctx, to)
	if v != nil {
		return nil, mtasts.Policy{}, v
	}
	policy, err := q.policies.of(ctx, to.domain)
	if err != nil {
		q.log.WarnContext(ctx, "MTA-STS policy cannot be read", "rcpt_domain", to.domain, "error", err)
		return nil, policy, &verdictLocal
	}
	endpoints := make([]endpoint, 0, len(hosts))
	for _, host := range hosts[:min(len(hosts), maxHosts)] {
		e := endpoint{host: host, port: q.mxPort, tls: tlsMaybe}
		if policy.Mode == mtasts.Enforce {
			e.tls = tlsVerified
			if !policy.Allows(e.name()) {
				q.noteUnmet(ctx, mtasts.Enforce, e, errNotInPolicy)
				continue
			}
		}
		endpoints = append(endpoints, e)
	}
	if len(endpoints) == 0 {
		return nil, policy, &verdict{
			status: store.RecipientQueued, response: "451 4.7.1 None of the mail servers of " + to.domain + " is in its MTA-STS policy",
		}
	}
	return endpoints, policy, nil
}

// hosts returns the MX hosts of a destination, or the verdict when it has none.
func (q *Queue) hosts(ctx context.Context, to dest) ([]string, *verdict) {
	hosts, err := q.dir.hosts(ctx, to.domain)
	switch {
	case errors.Is(err, errNullMX):
		return nil, &verdict{status: store.RecipientBounced, response: "556 5.1.10 " + to.domain + " does not take mail"}
	case errors.Is(err, errNoDomain):
		return nil, &verdict{status: store.RecipientBounced, response: "550 5.1.2 " + to.domain + " has no mail server and no address"}
	case err != nil:
		q.log.InfoContext(ctx, "DNS does not answer", "rcpt_domain", to.domain, "error", err)
		return nil, &verdict{status: store.RecipientQueued, response: "451 4.4.3 DNS of " + to.domain + " does not answer"}
	}
	return hosts, nil
}

// peers yields connections that are ready for a transaction, or why there is
// none, until enough addresses were tried. Who takes a connection gives it back
// to q.conns.
func (q *Queue) peers(ctx context.Context, endpoints []endpoint) iter.Seq2[*peer, *fault] {
	return func(yield func(*peer, *fault) bool) {
		tries := 0
		for _, e := range endpoints {
			if p := q.conns.take(ctx, e); p != nil && !yield(p, nil) {
				return
			}
			addrs, err := q.dir.addresses(ctx, e.host)
			if err != nil {
				f := faultOf(ctx, e, err)
				if !yield(nil, &f) {
					return
				}
			}
			for _, addr := range addrs[:min(len(addrs), maxHosts)] {
				if tries >= maxTries || ctx.Err() != nil {
					return
				}
				p, f := q.call(ctx, e, addr)
				if f == nil || !neverLeft(f.err) {
					tries++
				}
				if !yield(p, f) {
					return
				}
			}
		}
	}
}

func (q *Queue) call(ctx context.Context, e endpoint, addr netip.Addr) (*peer, *fault) {
	p, err := q.dialer.dial(ctx, e, addr)
	if err == nil {
		return p, nil
	}
	f := faultOf(ctx, e, err)
	if errors.Is(err, errAuth) || errors.Is(err, errNoTLS) && e.trusted {
		q.log.WarnContext(ctx, "relay cannot be used", "relay", e.String(), "error", err)
	}
	if _, failed := errors.AsType[*tlsError](err); e.tls == tlsVerified && !e.trusted && (failed || errors.Is(err, errNoTLS)) {
		q.noteUnmet(ctx, mtasts.Enforce, e, err)
	}
	return nil, &f
}

// neverLeft says whether a call failed on this machine, as an IPv6 address does
// where there is no IPv6: that costs nothing, and does not count.
func neverLeft(err error) bool {
	return errors.Is(err, netguard.ErrRefused) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}
