// Package seal encrypts secrets at rest.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// Sealer encrypts secrets at rest with AES-256-GCM. The label binds a sealed
// value to its place, so that one cannot be put where another belongs.
type Sealer struct{ aead cipher.AEAD }

// New returns the Sealer with a key of 32 bytes.
func New(key []byte) (Sealer, error) {
	if len(key) != 32 {
		return Sealer{}, errors.New("the seal key is not 32 bytes long")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Sealer{}, fmt.Errorf("seal key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return Sealer{aead}, err
}

// Seal encrypts plain.
func (s Sealer) Seal(label string, plain []byte) []byte {
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // crypto/rand never fails
	return s.aead.Seal(nonce, nonce, plain, []byte(label))
}

// Open returns what was sealed with the same key and label.
func (s Sealer) Open(label string, sealed []byte) ([]byte, error) {
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
