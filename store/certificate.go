package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// certificateLabel binds what is sealed to its row.
func certificateLabel(name string) string { return "certificate " + name }

// Certificate returns what PutCertificate keeps under a name. ErrNotFound when
// there is nothing.
func (s *Store) Certificate(ctx context.Context, name string) ([]byte, error) {
	const q = `SELECT sealed FROM certificates WHERE name = $1`
	var sealed []byte
	if err := s.read.GetContext(ctx, &sealed, q, name); err != nil {
		return nil, s.wrap(err, "certificate "+name)
	}
	plain, err := s.seal.open(certificateLabel(name), sealed)
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
	return s.inTx(ctx, "keep a certificate", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, name, s.seal.seal(certificateLabel(name), data), NewTime(s.now()))
		return err
	})
}

// DeleteCertificate forgets what is kept under a name. That there is nothing is no
// error.
func (s *Store) DeleteCertificate(ctx context.Context, name string) error {
	const q = `DELETE FROM certificates WHERE name = $1`
	return s.inTx(ctx, "forget a certificate", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, name)
		return err
	})
}

// ClaimCertificate says whether the caller is the one of all nodes who is to get a
// certificate now; until a time no other is told so.
func (s *Store) ClaimCertificate(ctx context.Context, name string, until time.Time) (bool, error) {
	const q = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
		WHERE cast(settings.value AS bigint) <= $3`
	var n int64
	err := s.inTx(ctx, "claim a certificate", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, "certificate "+name, fmt.Sprint(NewTime(until).UnixMicro()), NewTime(s.now()))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n == 1, err
}
