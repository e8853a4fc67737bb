package main

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// secretFile is the name of the installation secret's file in the data folder.
const secretFile = "secret"

// subkeys are derived from the installation secret, one per use. Each is derived
// separately, so that none reveals another.
type subkeys struct {
	cursors []byte // signs list cursors
	// feedback signs reverse-paths, unsubscribe links and tracking links.
	feedback []byte
	files    []byte // signs download links
	seal     []byte // encrypts private keys in the database
	domains  []byte // creates the tokens that prove domain ownership
	mark     []byte // identifies the secret; not secret itself
	notices  []byte // signs the dashboard's notices between pages
	approve  []byte // signs the links to drafts
}

// derive returns the subkeys of the installation secret. The derivation must
// never change: an installation could no longer decrypt its own keys.
func derive(s secret) (subkeys, error) {
	var k subkeys
	for use, key := range map[string]*[]byte{
		"cursors": &k.cursors, "files": &k.files, "seal": &k.seal, "domains": &k.domains,
		"feedback": &k.feedback, "mark": &k.mark, "notices": &k.notices, "approve": &k.approve,
	} {
		var err error
		if *key, err = hkdf.Key(sha256.New, []byte(s), nil, "postroom "+use, 32); err != nil {
			return k, err
		}
	}
	return k, nil
}

// installSecret returns the configured secret, or the one in the data folder. It
// returns fs.ErrNotExist if there is neither.
func (c Config) installSecret() (secret, error) {
	if c.Secret != "" {
		return c.Secret, nil
	}
	path := filepath.Join(c.Data, secretFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the installation secret: %w", err)
	}
	var s secret
	if err := s.UnmarshalText([]byte(strings.TrimSpace(string(b)))); err != nil {
		return "", fmt.Errorf("the installation secret in %s is shorter than 32 characters: restore the original", path)
	}
	return s, nil
}

// newSecret returns a secret of 256 random bits.
func newSecret() secret {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return secret(base64.RawURLEncoding.EncodeToString(b[:]))
}

// keep writes s into the data folder, readable only by its owner, and syncs it:
// nothing may be encrypted with a secret that a power failure can lose.
func (s secret) keep(data string) error {
	path := filepath.Join(data, secretFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("another node wrote the installation secret %s just now: restart this one", path)
	}
	if err != nil {
		return fmt.Errorf("save the installation secret: %w", err)
	}
	_, err = f.WriteString(string(s) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close(), syncFolder(data)); err != nil {
		return fmt.Errorf("save the installation secret: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// forget removes what keep wrote.
func (s secret) forget(data string) error {
	err := os.Remove(filepath.Join(data, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
