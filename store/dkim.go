package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// DKIMKey is one private signing key of a domain. Private is PKCS #8 DER and is
// sealed in the database.
type DKIMKey struct {
	Domain    string
	Selector  string
	Algorithm string // "rsa" or "ed25519"
	Private   []byte
}

type dkimRow struct {
	Domain    string `db:"domain"`
	Selector  string `db:"selector"`
	Algorithm string `db:"algorithm"`
	Sealed    []byte `db:"sealed"`
}

func dkimLabel(domain, selector string) string { return "dkim/" + domain + "/" + selector }

// AddDKIMKeys stores the keys, and leaves those alone that are there under the
// same domain and selector: nodes that start together keep the first ones.
func (s *Store) AddDKIMKeys(ctx context.Context, keys ...DKIMKey) error {
	const q = `
		INSERT INTO dkim_keys (domain, selector, algorithm, sealed, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (domain, selector) DO NOTHING`
	return s.inTx(ctx, "add DKIM keys", func(tx *sqlx.Tx) error {
		for _, k := range keys {
			sealed := s.seal.seal(dkimLabel(k.Domain, k.Selector), k.Private)
			if _, err := tx.ExecContext(ctx, q, k.Domain, k.Selector, k.Algorithm, sealed, NewTime(s.now())); err != nil {
				return err
			}
		}
		return nil
	})
}

// DKIMKeys returns the keys of domain, oldest first. None is not an error.
func (s *Store) DKIMKeys(ctx context.Context, domain string) ([]DKIMKey, error) {
	const q = `SELECT domain, selector, algorithm, sealed FROM dkim_keys WHERE domain = $1 ORDER BY seq`
	var rows []dkimRow
	if err := s.read.SelectContext(ctx, &rows, q, domain); err != nil {
		return nil, s.wrap(err, "DKIM keys")
	}
	keys := make([]DKIMKey, 0, len(rows))
	for _, r := range rows {
		private, err := s.seal.open(dkimLabel(r.Domain, r.Selector), r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("DKIM key %s of %s: %w", r.Selector, r.Domain, err)
		}
		keys = append(keys, DKIMKey{r.Domain, r.Selector, r.Algorithm, private})
	}
	return keys, nil
}
