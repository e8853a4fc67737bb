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

// subkeys are what the installation secret is used for. Each is derived on its own,
// so that none tells anything about another.
type subkeys struct {
	cursors []byte // signs list cursors
	// feedback signs return paths, unsubscribe and tracking links.
	feedback []byte
	files    []byte // signs download links
	seal     []byte // encrypts private keys in the database
	domains  []byte // makes the tokens that show whose a domain is
	mark     []byte // tells the secret from others, and is no secret itself
	notices  []byte // signs what a page of the dashboard tells the next
}

// derive returns the subkeys of the installation secret. What they are derived with
// must never change: it would lock every install out of its own keys.
func derive(s secret) (subkeys, error) {
	sub := func(use string) ([]byte, error) {
		return hkdf.Key(sha256.New, []byte(s), nil, "postroom "+use, 32)
	}
	var k subkeys
	var errs [7]error
	k.cursors, errs[0] = sub("cursors")
	k.files, errs[1] = sub("files")
	k.seal, errs[2] = sub("seal")
	k.domains, errs[3] = sub("domains")
	k.feedback, errs[4] = sub("feedback")
	k.mark, errs[5] = sub("mark")
	k.notices, errs[6] = sub("notices")
	return k, errors.Join(errs[:]...)
}

// installSecret returns the secret that was given, or else the one in the data
// folder. fs.ErrNotExist when there is neither.
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

// keep writes s into the data folder, readable by its owner alone, and returns
// when it is on the disk: nothing may be encrypted with a secret that a power
// cut can take away.
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

// forget takes back what keep wrote.
func (s secret) forget(data string) error {
	err := os.Remove(filepath.Join(data, secretFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
