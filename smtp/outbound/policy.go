package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/postroom/postroom/internal/mtasts"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// Policies holds the MTA-STS policies of other domains (RFC 8461). They are
// stored until they expire.
type Policies struct {
	store   *store.Store
	dir     *Directory
	fetcher *mtasts.Fetcher
	now     func() time.Time
	log     *slog.Logger

	known  *lookups[mtasts.Policy] // by domain, to avoid a query for each message
	failed *lookups[struct{}]      // by domain and id
}

// NewPolicies returns the policies of the domains in dir. Connections to policy
// hosts follow the rules of the dialer.
func NewPolicies(s *store.Store, dir *Directory, d *Dialer, port uint16, now func() time.Time, log *slog.Logger) *Policies {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return d.dialName(ctx, dir, address) }
	return &Policies{
		store: s, dir: dir, now: now, log: log,
		fetcher: mtasts.NewFetcher(mtasts.FetchConfig{Dial: dial, RootCAs: d.Roots, Port: port}),
		known:   newLookups[mtasts.Policy](now, dnsTTL),
		failed:  newLookups[struct{}](now, fetchAgain),
	}
}

// Of returns the policy of a domain, or the zero Policy if it has none. Its error
// is the store's.
func (p *Policies) Of(ctx context.Context, domain string) (mtasts.Policy, error) {
	domain, err := smtp.ASCIIDomain(domain)
	if err != nil {
		return mtasts.Policy{}, nil // the delivery will fail as well
	}
	return p.known.get(domain, func() (mtasts.Policy, error) { return p.find(ctx, domain) })
}

// find follows RFC 8461 section 5.1: an announced policy that is unknown is
// fetched. A known policy applies until it expires, even if its DNS record or
// host disappears.
func (p *Policies) find(ctx context.Context, domain string) (mtasts.Policy, error) {
	old, err := p.store.MailPolicy(ctx, domain)
	known := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return mtasts.Policy{}, err
	}
	id, announced := p.announced(ctx, domain)
	if announced && (!known || old.PolicyID != id || p.now().Sub(old.FetchedAt.Time) >= refreshAfter) {
		if policy, ok := p.fetch(ctx, domain, id); ok {
			return policy, nil
		}
	}
	if !known {
		return mtasts.Policy{}, nil
	}
	return mtasts.Policy{Mode: mtasts.Mode(old.Mode), MX: old.MX.V}, nil
}

// announced returns the policy id in DNS. ok is false if there is none or the
// query fails.
func (p *Policies) announced(ctx context.Context, domain string) (id string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	records, err := p.dir.resolver.LookupTXT(ctx, mtasts.RecordName(domain)+".")
	if err != nil {
		return "", false
	}
	return mtasts.ParseRecord(records)
}

func (p *Policies) fetch(ctx context.Context, domain, id string) (mtasts.Policy, bool) {
	key := domain + " " + id
	if _, failed := p.failed.look(key); failed {
		return mtasts.Policy{}, false
	}
	policy, err := p.fetcher.Fetch(ctx, domain)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			p.failed.keep(key, struct{}{})
			p.log.InfoContext(ctx, "MTA-STS policy cannot be fetched", "rcpt_domain", domain, "error", err)
		}
		return mtasts.Policy{}, false
	}
	now := p.now()
	err = p.store.SaveMailPolicy(ctx, store.MailPolicy{
		Domain: domain, PolicyID: id, Mode: string(policy.Mode), MX: store.JSON[[]string]{V: policy.MX},
		FetchedAt: store.NewTime(now), ExpiresAt: store.NewTime(now.Add(policy.MaxAge)),
	})
	if err != nil { // use it for this message nevertheless
		p.log.WarnContext(ctx, "MTA-STS policy cannot be stored", "rcpt_domain", domain, "error", err)
	}
	return policy, true
}

// ErrNotInPolicy means that a server is not listed in its domain's policy.
var ErrNotInPolicy = errors.New("server is not in the MTA-STS policy")

// dialName connects to a host by name, if the guard allows its address.
func (d *Dialer) dialName(ctx context.Context, dir *Directory, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := dir.Addresses(ctx, host+".")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	nd := net.Dialer{Timeout: d.Timeouts.Connect, Control: d.Guard.Control}
	var errs []error
	for _, addr := range addrs[:min(len(addrs), MaxTries)] {
		conn, err := nd.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Unmet returns why a connection does not satisfy a policy, or nil.
func (p *Peer) Unmet(policy mtasts.Policy, roots *x509.CertPool) error {
	if !policy.Allows(p.At.Name()) {
		return ErrNotInPolicy
	}
	conn, ok := p.conn.(*tls.Conn)
	if !ok {
		return ErrNoTLS
	}
	certs := conn.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return ErrNoTLS
	}
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{DNSName: p.At.Name(), Roots: roots, Intermediates: between})
	return err
}
