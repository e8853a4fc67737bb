package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// ErrSecret means that the installation secret is not the one that the database was
// made with: what is sealed in it cannot be opened.
var ErrSecret = errors.New("not the installation secret that the database was made with")

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
	err := s.inTx(ctx, "check the installation secret", func(tx *sqlx.Tx) error {
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

// sealer encrypts secrets at rest with AES-256-GCM. The label binds a sealed
// value to its place, so that one cannot be put where another belongs.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	if len(key) != 32 {
		return sealer{}, errors.New("the seal key is not 32 bytes long")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("seal key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

func (s sealer) seal(label string, plain []byte) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // crypto/rand never fails
	return s.aead.Seal(nonce, nonce, plain, []byte(label))
}

func (s sealer) open(label string, sealed []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("sealed value is too short")
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(label))
	if err != nil {
		return nil, errors.New("sealed value does not open: is this the installation secret it was sealed with?")
	}
	return plain, nil
}
