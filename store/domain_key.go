package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// KeyShown is how long the record of a key stays up after another one signs in
// its place: mail that it signed may be read as late (RFC 6376 section 3.1).
const KeyShown = 7 * 24 * time.Hour

// DomainKey is the public side of a signing key of an account's domain, or of the
// install's own. It signs from when it is found published until a newer one of its
// algorithm is.
type DomainKey struct {
	Seq       int64  `db:"seq"`
	DomainSeq int64  `db:"domain_seq"` // 0 of the install's
	Selector  string `db:"selector"`
	Algorithm string `db:"algorithm"`
	Public    string `db:"public"`
	FoundAt   *Time  `db:"found_at"`
	RetiredAt *Time  `db:"retired_at"`
}

const domainKeyColumns = `seq, coalesce(domain_seq, 0) AS domain_seq, selector, algorithm, public, found_at, retired_at`

// Signs says whether the key signs, once the domain is verified.
func (k DomainKey) Signs() bool { return k.FoundAt != nil && k.RetiredAt == nil }

// Waits says whether the key has yet to be found published.
func (k DomainKey) Waits() bool { return k.FoundAt == nil && k.RetiredAt == nil }

// readDomainKeys fills in the keys of the domains.
func readDomainKeys(ctx context.Context, db sqlx.QueryerContext, rows []Domain) error {
	if len(rows) == 0 {
		return nil
	}
	seqs := make([]int64, len(rows))
	for i, d := range rows {
		seqs[i] = d.Seq
	}
	q, args, err := sqlx.In(`SELECT `+domainKeyColumns+` FROM dkim_keys WHERE domain_seq IN (?) ORDER BY seq`, seqs)
	if err != nil {
		return fmt.Errorf("keys of domains: %w", err)
	}
	var keys []DomainKey
	if err := sqlx.SelectContext(ctx, db, &keys, sqlx.Rebind(sqlx.DOLLAR, q), args...); err != nil {
		return fmt.Errorf("keys of domains: %w", err)
	}
	of := map[int64][]DomainKey{}
	for _, k := range keys {
		of[k.DomainSeq] = append(of[k.DomainSeq], k)
	}
	for i, d := range rows {
		rows[i].Keys = of[d.Seq]
	}
	return nil
}

// addDomainKeys stores keys of d and reads them back.
func (s *Store) addDomainKeys(ctx context.Context, tx *sqlx.Tx, d *Domain, keys []DKIMKey) error {
	n, err := s.insertDKIMKeys(ctx, tx, &d.Seq, nil, keys)
	if err != nil {
		return fmt.Errorf("insert DKIM keys: %w", err)
	}
	if n < int64(len(keys)) {
		return errors.New("insert DKIM keys: a selector is in use")
	}
	rows := []Domain{*d}
	err = readDomainKeys(ctx, tx, rows)
	*d = rows[0]
	return err
}

// RotateKeys adds the keys that are to follow those of the domain: each signs once
// it is found published. ErrState while earlier ones wait for that.
func (s *Store) RotateKeys(ctx context.Context, accountID int64, id string, keys []DKIMKey) (Domain, error) {
	const q = `SELECT ` + domainColumns + ` FROM domains WHERE account_id = $1 AND id = $2`
	rows := make([]Domain, 1)
	err := s.inTx(ctx, "rotate keys", func(tx *sqlx.Tx) error {
		if err := tx.GetContext(ctx, &rows[0], q+s.engine.LockRow(), accountID, id); err != nil {
			return err
		}
		if err := readDomainKeys(ctx, tx, rows); err != nil {
			return err
		}
		if slices.ContainsFunc(rows[0].Keys, DomainKey.Waits) {
			return fmt.Errorf("keys of %s wait to be published: %w", rows[0].Name, ErrState)
		}
		return s.addDomainKeys(ctx, tx, &rows[0], keys)
	})
	return rows[0], err
}

// noteKeys keeps what a look-up found of the keys of a domain, oldest first: those
// that are published now sign, the ones before them are retired, and what has been
// retired for KeyShown goes. found has the selectors. It returns the keys as they
// then are.
func (s *Store) noteKeys(ctx context.Context, tx *sqlx.Tx, keys []DomainKey, found map[string]bool, now Time) ([]DomainKey, error) {
	const (
		save   = `UPDATE dkim_keys SET found_at = $2, retired_at = $3 WHERE seq = $1`
		remove = `DELETE FROM dkim_keys WHERE seq = $1`
	)
	signs := map[string]bool{} // by algorithm
	for i := len(keys) - 1; i >= 0; i-- {
		k := &keys[i]
		if k.RetiredAt != nil && !now.Before(k.RetiredAt.Add(KeyShown)) {
			if _, err := tx.ExecContext(ctx, remove, k.Seq); err != nil {
				return nil, fmt.Errorf("remove key: %w", err)
			}
			keys = slices.Delete(keys, i, i+1)
			continue
		}
		before := *k
		if k.Waits() && found[k.Selector] {
			k.FoundAt = &now
		}
		if k.Signs() && signs[k.Algorithm] {
			k.RetiredAt = &now
		}
		signs[k.Algorithm] = signs[k.Algorithm] || k.Signs()
		if *k == before {
			continue
		}
		if _, err := tx.ExecContext(ctx, save, k.Seq, k.FoundAt, k.RetiredAt); err != nil {
			return nil, fmt.Errorf("note key: %w", err)
		}
	}
	return keys, nil
}
