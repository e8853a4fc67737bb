package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

const installKeys = `SELECT ` + domainKeyColumns + ` FROM dkim_keys WHERE domain_seq IS NULL AND domain = $1 ORDER BY seq`

// InstallKeys returns the keys of the install's own mail domain, oldest first:
// those that sign, those that wait to be published, and those that are shown for
// KeyShown more.
func (s *Store) InstallKeys(ctx context.Context, domain string) ([]DomainKey, error) {
	var keys []DomainKey
	err := s.read.SelectContext(ctx, &keys, installKeys, domain)
	return keys, s.wrap(err, "keys of the mail domain")
}

// RotateInstallKeys adds the keys that are to follow those of the mail domain: each
// signs once it is found published. ErrState while earlier ones wait for that.
func (s *Store) RotateInstallKeys(ctx context.Context, domain string, keys []DKIMKey) error {
	return s.changeInstallKeys(ctx, domain, func(tx *sqlx.Tx, have []DomainKey) error {
		if slices.ContainsFunc(have, DomainKey.Waits) {
			return fmt.Errorf("keys of %s wait to be published: %w", domain, ErrState)
		}
		n, err := s.insertDKIMKeys(ctx, tx, nil, nil, keys)
		if err == nil && n < int64(len(keys)) {
			err = fmt.Errorf("a selector of %s is in use: %w", domain, ErrState)
		}
		return err
	})
}

// RecordInstallKeys keeps which selectors of the mail domain a look-up found, as
// RecordCheck does for an account's domain.
func (s *Store) RecordInstallKeys(ctx context.Context, domain string, found map[string]bool) error {
	return s.changeInstallKeys(ctx, domain, func(tx *sqlx.Tx, have []DomainKey) error {
		_, err := s.noteKeys(ctx, tx, have, found, NewTime(s.now()))
		return err
	})
}

func (s *Store) changeInstallKeys(ctx context.Context, domain string, change func(*sqlx.Tx, []DomainKey) error) error {
	return s.inTx(ctx, "keys of the mail domain", func(tx *sqlx.Tx) error {
		var have []DomainKey
		if err := tx.SelectContext(ctx, &have, installKeys+s.engine.LockRow(), domain); err != nil {
			return err
		}
		return change(tx, have)
	})
}
