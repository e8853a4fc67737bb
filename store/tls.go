package store

import (
	"context"
	"fmt"
	"time"
)

// certificateLabel binds what is sealed to its row.
func certificateLabel(name string) string { return "certificate " + name }

// Certificate returns what PutCertificate keeps under a name. It returns
// ErrNotFound if there is nothing.
func (s *Store) Certificate(ctx context.Context, name string) ([]byte, error) {
	sealed, err := readOne[[]byte](ctx, s, "certificate "+name, `SELECT sealed FROM certificates WHERE name = $1`, name)
	if err != nil {
		return nil, err
	}
	plain, err := s.seal.Open(certificateLabel(name), sealed)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	return plain, nil
}

// PutCertificate keeps a certificate with its key, or what getting one needs, for
// all nodes, sealed.
func (s *Store) PutCertificate(ctx context.Context, name string, data []byte) error {
	const q = `INSERT INTO certificates (name, sealed, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`
	_, err := s.exec(ctx, "keep a certificate", q, name, s.seal.Seal(certificateLabel(name), data), NewTime(s.now()))
	return err
}

// DeleteCertificate forgets what is kept under a name. A missing entry is not an
// error.
func (s *Store) DeleteCertificate(ctx context.Context, name string) error {
	_, err := s.exec(ctx, "forget a certificate", `DELETE FROM certificates WHERE name = $1`, name)
	return err
}

// ClaimCertificate reports whether this node may obtain a certificate now. No
// other node may until the given time.
func (s *Store) ClaimCertificate(ctx context.Context, name string, until time.Time) (bool, error) {
	return s.claimName(ctx, "certificate "+name, until)
}

// MailPolicy is what a domain asks of those who send mail to it, as it was
// fetched (MTA-STS, RFC 8461). It is kept for all nodes, and over restarts:
// without it, whoever can keep a domain from being asked could read its mail.
type MailPolicy struct {
	Domain    string         `db:"domain"` // in its ASCII form, lower case
	PolicyID  string         `db:"policy_id"`
	Mode      string         `db:"mode"` // enforce, testing or none
	MX        JSON[[]string] `db:"mx"`
	FetchedAt Time           `db:"fetched_at"`
	ExpiresAt Time           `db:"expires_at"`
}

// SaveMailPolicy keeps p in place of what was known of its domain.
func (s *Store) SaveMailPolicy(ctx context.Context, p MailPolicy) error {
	const q = `
		INSERT INTO mail_policies (domain, policy_id, mode, mx, fetched_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, mode = excluded.mode, mx = excluded.mx,
			fetched_at = excluded.fetched_at, expires_at = excluded.expires_at`
	_, err := s.write.ExecContext(ctx, q, p.Domain, p.PolicyID, p.Mode, p.MX, p.FetchedAt, p.ExpiresAt)
	return s.wrap(err, "save mail policy")
}

// MailPolicy returns what is known of a domain. It returns ErrNotFound if nothing
// is, or nothing any more.
func (s *Store) MailPolicy(ctx context.Context, domain string) (MailPolicy, error) {
	const q = `SELECT domain, policy_id, mode, mx, fetched_at, expires_at FROM mail_policies WHERE domain = $1 AND expires_at > $2`
	return readOne[MailPolicy](ctx, s, "mail policy of "+domain, q, domain, NewTime(s.now()))
}

// SweepMailPolicies deletes some of the policies that hold no longer, and returns
// how many; 0 means that there were none.
func (s *Store) SweepMailPolicies(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	return s.sweepBefore(ctx, "mail_policies", "domain", "expires_at", NewTime(s.now()))
}
