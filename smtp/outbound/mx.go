package outbound

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dns"
	"github.com/postroom/postroom/smtp"
)

// NewResolver returns a resolver that queries server (host:port), or the system's
// servers if it is empty.
func NewResolver(server string) *net.Resolver {
	if server == "" {
		return net.DefaultResolver
	}
	var d net.Dialer
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, server)
		},
	}
}

// ErrNullMX means that a domain accepts no mail (RFC 7505).
var ErrNullMX = errors.New("domain takes no mail")

// ErrNoDomain means that a domain has neither an MX nor an address record.
var ErrNoDomain = errors.New("no such domain")

// Directory looks up the servers of a domain.
type Directory struct {
	resolver dns.Resolver
	mx       *lookups[[]*net.MX]
	addrs    *lookups[[]netip.Addr]
}

func NewDirectory(r dns.Resolver, now func() time.Time) *Directory {
	return &Directory{
		resolver: r,
		mx:       newLookups[[]*net.MX](now, dnsTTL),
		addrs:    newLookups[[]netip.Addr](now, dnsTTL),
	}
}

// Hosts returns the names of the MX hosts of domain by preference, those of equal
// preference in random order (RFC 5321 section 5.1). Without MX records it
// returns the domain itself. The names end with a dot, so that no search list
// applies. The error is ErrNoDomain, ErrNullMX, or a temporary DNS error.
func (d *Directory) Hosts(ctx context.Context, domain string) ([]string, error) {
	name, err := smtp.ASCIIDomain(strings.TrimSuffix(domain, "."))
	if err != nil || name == "" {
		return nil, ErrNoDomain
	}
	name += "."
	records, err := d.mx.get(name, func() ([]*net.MX, error) { return d.lookupMX(ctx, name) })
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		if _, err := d.Addresses(ctx, name); err != nil {
			return nil, err
		}
		return []string{name}, nil
	}
	if len(records) == 1 && strings.TrimSuffix(records[0].Host, ".") == "" {
		return nil, ErrNullMX
	}
	records = slices.Clone(records)
	rand.Shuffle(len(records), func(i, j int) { //nolint:gosec // spreads load, protects nothing
		records[i], records[j] = records[j], records[i]
	})
	slices.SortStableFunc(records, func(a, b *net.MX) int { return int(a.Pref) - int(b.Pref) })
	hosts := make([]string, 0, len(records))
	for _, r := range records {
		host := strings.ToLower(strings.TrimSuffix(r.Host, ".")) + "."
		if host != "." && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// lookupMX returns no records and no error for a name without MX records.
func (d *Directory) lookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	records, err := d.resolver.LookupMX(ctx, name)
	// If some records are invalid, the others are returned with the error.
	if len(records) > 0 || dns.IsNotFound(err) {
		return records, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up MX: %w", err)
	}
	return nil, nil
}

// Addresses returns the addresses of a host, or ErrNoDomain if it has none.
func (d *Directory) Addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	return d.addrs.get(host, func() ([]netip.Addr, error) {
		if addr, err := netip.ParseAddr(host); err == nil {
			return []netip.Addr{addr}, nil
		}
		return d.lookupAddresses(ctx, host)
	})
}

func (d *Directory) lookupAddresses(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	found, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if dns.IsNotFound(err) || err == nil && len(found) == 0 {
		return nil, ErrNoDomain
	}
	if err != nil {
		return nil, fmt.Errorf("look up address: %w", err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, nil
}
