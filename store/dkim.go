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
	Public    string // what stands in p= of its record (RFC 6376 section 3.6.1)
	Private   []byte
}

type dkimRow struct {
	Domain    string `db:"domain"`
	Selector  string `db:"selector"`
	Algorithm string `db:"algorithm"`
	Public    string `db:"public"`
	Sealed    []byte `db:"sealed"`
}

func dkimLabel(domain, selector string) string { return "dkim/" + domain + "/" + selector }

// AddDKIMKeys stores the first keys of the install's own mail domain, which sign
// at once, and leaves those alone that are there under the same domain and
// selector: nodes that start together keep the first ones.
func (s *Store) AddDKIMKeys(ctx context.Context, keys ...DKIMKey) error {
	now := NewTime(s.now())
	return s.inTx(ctx, "add DKIM keys", func(tx *sqlx.Tx) error {
		_, err := s.insertDKIMKeys(ctx, tx, nil, &now, keys)
		return err
	})
}

// insertDKIMKeys stores the keys whose selectors are free, sealed, and returns
// how many. domainSeq is of the account's domain that they are for, and foundAt
// is from when they sign, if they need not be found published.
func (s *Store) insertDKIMKeys(ctx context.Context, tx *sqlx.Tx, domainSeq *int64, foundAt *Time, keys []DKIMKey) (int64, error) {
	const q = `
		INSERT INTO dkim_keys (domain_seq, domain, selector, algorithm, public, sealed, found_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (domain, selector) DO NOTHING`
	var all int64
	for _, k := range keys {
		sealed := s.seal.seal(dkimLabel(k.Domain, k.Selector), k.Private)
		res, err := tx.ExecContext(ctx, q, domainSeq, k.Domain, k.Selector, k.Algorithm, k.Public, sealed, foundAt, NewTime(s.now()))
		if err != nil {
			return all, err
		}
		n, err := res.RowsAffected()
		if all += n; err != nil {
			return all, err
		}
	}
	return all, nil
}

// TheInstall stands for an account where the install's own mail domain is meant,
// which all accounts send from.
const TheInstall int64 = 0

// DKIMKeys returns the keys that an account's mail of domain is signed with,
// oldest first, or, for TheInstall, those of the mail domain. None is not an
// error. Keys sign from when they were found published until they are retired,
// and those of an account's domain only while it is verified for that account.
func (s *Store) DKIMKeys(ctx context.Context, accountID int64, domain string) ([]DKIMKey, error) {
	const q = `SELECT k.domain, k.selector, k.algorithm, k.public, k.sealed
		FROM dkim_keys k LEFT JOIN domains d ON d.seq = k.domain_seq
		WHERE k.domain = $1 AND k.found_at IS NOT NULL AND k.retired_at IS NULL
			AND (k.domain_seq IS NULL AND $2 = 0 OR d.account_id = $2 AND d.status = 'verified')
		ORDER BY k.seq`
	var rows []dkimRow
	if err := s.read.SelectContext(ctx, &rows, q, domain, accountID); err != nil {
		return nil, s.wrap(err, "DKIM keys")
	}
	keys := make([]DKIMKey, 0, len(rows))
	for _, r := range rows {
		private, err := s.seal.open(dkimLabel(r.Domain, r.Selector), r.Sealed)
		if err != nil {
			return nil, fmt.Errorf("DKIM key %s of %s: %w", r.Selector, r.Domain, err)
		}
		keys = append(keys, DKIMKey{r.Domain, r.Selector, r.Algorithm, r.Public, private})
	}
	return keys, nil
}
