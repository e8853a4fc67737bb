package queue

import (
	"context"
	"errors"
	"iter"
	"net/netip"

	"github.com/postroom/postroom/internal/mtasts"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// route returns the servers to try, in order, and the policy of the domain, or
// the result if there are none. The relay has no policy.
func (q *Queue) route(ctx context.Context, to dest) ([]outbound.Endpoint, mtasts.Policy, *result) {
	if to.kind == toRelay {
		return []outbound.Endpoint{q.relay.At}, mtasts.Policy{}, nil
	}
	hosts, v := q.hosts(ctx, to)
	if v != nil {
		return nil, mtasts.Policy{}, v
	}
	policy, err := q.policies.Of(ctx, to.domain)
	if err != nil {
		q.log.WarnContext(ctx, "MTA-STS policy cannot be read", "rcpt_domain", to.domain, "error", err)
		return nil, policy, &resultLocal
	}
	endpoints := make([]outbound.Endpoint, 0, len(hosts))
	for _, host := range hosts[:min(len(hosts), maxHosts)] {
		e := outbound.Endpoint{Host: host, Port: q.mxPort, TLS: outbound.TLSMaybe}
		if policy.Mode == mtasts.Enforce {
			e.TLS = outbound.TLSVerified
			if !policy.Allows(e.Name()) {
				q.noteUnmet(ctx, mtasts.Enforce, e, outbound.ErrNotInPolicy)
				continue
			}
		}
		endpoints = append(endpoints, e)
	}
	if len(endpoints) == 0 {
		return nil, policy, &result{
			status: store.RecipientQueued, response: "451 4.7.1 None of the mail servers of " + to.domain + " is in its MTA-STS policy",
		}
	}
	return endpoints, policy, nil
}

// hosts returns the MX hosts of a destination, or the result if it has none.
func (q *Queue) hosts(ctx context.Context, to dest) ([]string, *result) {
	hosts, err := q.dir.Hosts(ctx, to.domain)
	switch {
	case errors.Is(err, outbound.ErrNullMX):
		return nil, &result{status: store.RecipientBounced, response: "556 5.1.10 " + to.domain + " does not take mail"}
	case errors.Is(err, outbound.ErrNoDomain):
		return nil, &result{status: store.RecipientBounced, response: "550 5.1.2 " + to.domain + " has no mail server and no address"}
	case err != nil:
		q.log.InfoContext(ctx, "DNS lookup failed", "rcpt_domain", to.domain, "error", err)
		return nil, &result{status: store.RecipientQueued, response: "451 4.4.3 DNS of " + to.domain + " does not respond"}
	}
	return hosts, nil
}

// peers yields connections that are ready for a transaction, or the fault of a
// server, until enough addresses were tried. The caller returns connections to
// q.conns.
func (q *Queue) peers(ctx context.Context, endpoints []outbound.Endpoint) iter.Seq2[*outbound.Peer, *outbound.Fault] {
	return func(yield func(*outbound.Peer, *outbound.Fault) bool) {
		tries := 0
		for _, e := range endpoints {
			if p := q.conns.Take(ctx, e); p != nil && !yield(p, nil) {
				return
			}
			addrs, err := q.dir.Addresses(ctx, e.Host)
			if err != nil {
				if !yield(nil, outbound.FaultOf(ctx, e, err)) {
					return
				}
			}
			for _, addr := range addrs[:min(len(addrs), maxHosts)] {
				if tries >= outbound.MaxTries || ctx.Err() != nil {
					return
				}
				p, f := q.call(ctx, e, addr)
				if f == nil || !outbound.NeverLeft(f.Err) {
					tries++
				}
				if !yield(p, f) {
					return
				}
			}
		}
	}
}

func (q *Queue) call(ctx context.Context, e outbound.Endpoint, addr netip.Addr) (*outbound.Peer, *outbound.Fault) {
	p, err := q.dialer.Dial(ctx, e, addr)
	if err == nil {
		return p, nil
	}
	if errors.Is(err, outbound.ErrAuth) || errors.Is(err, outbound.ErrNoTLS) && e.Trusted {
		q.log.WarnContext(ctx, "relay cannot be used", "relay", e.String(), "error", err)
	}
	if _, failed := errors.AsType[*outbound.TLSError](err); e.TLS == outbound.TLSVerified && !e.Trusted && (failed || errors.Is(err, outbound.ErrNoTLS)) {
		q.noteUnmet(ctx, mtasts.Enforce, e, err)
	}
	return nil, outbound.FaultOf(ctx, e, err)
}

// noteUnmet records a server that does not meet its domain's policy. In mode
// testing it is used nevertheless, otherwise it is not.
func (q *Queue) noteUnmet(ctx context.Context, mode mtasts.Mode, e outbound.Endpoint, why error) {
	q.log.InfoContext(ctx, "MTA-STS policy is not met", "mx_host", e.Name(), "mode", mode, "error", why)
	if mode == mtasts.Testing {
		q.tally.unmetTesting.Add(1)
	} else {
		q.tally.unmetEnforced.Add(1)
	}
}
