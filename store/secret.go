package store

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
)

// ErrSecret means that the install secret is not the one that the database was
// made with: what is sealed in it cannot be opened.
var ErrSecret = errors.New("not the install secret that the database was made with")

const (
	proofLabel = "install"
	proofText  = "sealed with the install secret"
)

// ProveSecret shows that the seal key is the one that the database was made with.
// The first to ask leaves the proof. ErrSecret otherwise: whoever went on would
// seal some secrets with one key and some with another.
func (s *Store) ProveSecret(ctx context.Context) error {
	const (
		leave = `INSERT INTO install_secret (id, proof) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`
		read  = `SELECT proof FROM install_secret WHERE id = 1`
	)
	var proof []byte
	err := s.inTx(ctx, "prove the install secret", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, leave, s.seal.seal(proofLabel, []byte(proofText))); err != nil {
			return err
		}
		return tx.GetContext(ctx, &proof, read)
	})
	if err != nil {
		return err
	}
	if _, err := s.seal.open(proofLabel, proof); err != nil {
		return ErrSecret
	}
	return nil
}
