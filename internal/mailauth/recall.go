package mailauth

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/postroom/postroom/internal/dns"
)

var errNotRemembered = errors.New("not remembered")

// recall is a Resolver that returns cached results and makes no lookups.
type recall struct {
	cache  *Cache
	missed bool // a lookup was not cached, so the evaluation must be discarded
}

var _ dns.Resolver = (*recall)(nil)

func (r *recall) LookupTXT(_ context.Context, name string) ([]string, error) {
	return remembered[[]string](r, question{"TXT", name})
}

func (r *recall) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	return remembered[[]*net.MX](r, question{"MX", name})
}

func (r *recall) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	return remembered[[]netip.Addr](r, question{network, host})
}

func (r *recall) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return remembered[[]string](r, question{"PTR", addr})
}

func remembered[T any](r *recall, q question) (T, error) {
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	a := r.cache.results[q]
	if a == nil || a.until.IsZero() || !r.cache.now().Before(a.until) {
		var none T
		r.missed = true
		return none, errNotRemembered
	}
	value, _ := a.value.(T) // nil beside an error
	return value, a.err
}
