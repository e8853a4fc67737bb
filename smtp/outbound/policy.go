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

// Policies are what other domains ask of those who send to them (MTA-STS, RFC
// 8461). They are kept in the store until they expire.
type Policies struct {
	store   *store.Store
	dir     *Directory
	fetcher *mtasts.Fetcher
	now     func() time.Time
	log     *slog.Logger

	known  *lookups[mtasts.Policy] // by domain, so that not every mail asks
	failed *lookups[struct{}]      // by domain and id
}

// NewPolicies returns the policies of the domains in the directory. Policy hosts
// are called by the rules of the dialer.
func NewPolicies(s *store.Store, dir *Directory, d *Dialer, port uint16, now func() time.Time, log *slog.Logger) *Policies {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) { return d.dialName(ctx, dir, address) }
	return &Policies{
		store: s, dir: dir, now: now, log: log,
		fetcher: mtasts.NewFetcher(mtasts.FetchConfig{Dial: dial, RootCAs: d.Roots, Port: port}),
		known:   newLookups[mtasts.Policy](now, dnsLife),
		failed:  newLookups[struct{}](now, fetchAgain),
	}
}

// Of returns the policy of a domain, the zero Policy when it has none. Its error
// is the store's.
func (p *Policies) Of(ctx context.Context, domain string) (mtasts.Policy, error) {
	domain, err := smtp.ASCIIDomain(domain)
	if err != nil {
		return mtasts.Policy{}, nil // the mail will not go there either
	}
	return p.known.get(domain, func() (mtasts.Policy, error) { return p.find(ctx, domain) })
}

// find follows RFC 8461 section 5.1: a policy that is announced and not known is
// fetched, and one that is known holds until it expires, whatever becomes of its
// record and its host.
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

// announced returns the id of the policy that the DNS tells of. A DNS that does
// not answer tells of none.
func (p *Policies) announced(ctx context.Context, domain string) (id string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	records, err := p.dir.resolver.LookupTXT(ctx, mtasts.RecordName(domain)+".")
	if err != nil {
		return "", false
	}
	return mtasts.ParseRecord(records)
}

// fetch fetches a policy and keeps it.
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
	if err != nil { // it holds for this mail nevertheless
		p.log.WarnContext(ctx, "MTA-STS policy cannot be stored", "rcpt_domain", domain, "error", err)
	}
	return policy, true
}

// ErrNotInPolicy means that a server is none of those that its domain names.
var ErrNotInPolicy = errors.New("server is not in the MTA-STS policy")

// dialName connects to a host by name, where mail may be sent too.
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

// Unmet says why a connection is not what a policy asks for, nil when it is.
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
