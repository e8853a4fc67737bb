package queue

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/postroom/postroom/internal/dnsrec"
	"github.com/postroom/postroom/store"
)

// Selectors of the keys that EnsureKeys creates.
const (
	selectorRSA     = "postroom-rsa"
	selectorEd25519 = "postroom-ed25519"
)

// EnsureKeys creates an RSA-2048 and an Ed25519 key for domain, unless it has
// keys. If nodes start at the same time, the first node's keys are kept.
func EnsureKeys(ctx context.Context, s *store.Store, domain string) error {
	domain = strings.ToLower(domain)
	have, err := s.DKIMKeys(ctx, store.TheInstall, domain)
	if err != nil || len(have) > 0 {
		return err
	}
	made, err := makeKeys(domain, selectorRSA, selectorEd25519)
	if err != nil {
		return err
	}
	return s.AddDKIMKeys(ctx, made...)
}

// NewKeys creates an RSA-2048 and an Ed25519 key for domain, which must be in
// lower case. The selectors are unique, because several accounts may add one
// domain and a new key is published beside the old one.
func NewKeys(domain string) ([]store.DKIMKey, error) {
	prefix := "pr-" + strings.ToLower(rand.Text()[:8])
	return makeKeys(domain, prefix+"-rsa", prefix+"-ed25519")
}

func makeKeys(domain, rsaSelector, edSelector string) ([]store.DKIMKey, error) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a DKIM key: %w", err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a DKIM key: %w", err)
	}
	made := []store.DKIMKey{
		{Domain: domain, Selector: rsaSelector, Algorithm: "rsa"},
		{Domain: domain, Selector: edSelector, Algorithm: "ed25519"},
	}
	for i, key := range []crypto.Signer{rsaKey, edKey} {
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("make a DKIM key: %w", err)
		}
		public, err := publicKey(key)
		if err != nil {
			return nil, fmt.Errorf("make a DKIM key: %w", err)
		}
		made[i].Private, made[i].Public = private, base64.StdEncoding.EncodeToString(public)
	}
	return made, nil
}

// Records returns the TXT records with the public keys of the mail domain,
// including pending and retired ones (RFC 6376 section 3.6.1, RFC 8463 section
// 4).
func Records(ctx context.Context, s *store.Store, domain string) ([]dnsrec.Record, error) {
	domain = strings.ToLower(domain)
	stored, err := s.InstallKeys(ctx, domain)
	if err != nil {
		return nil, err
	}
	records := make([]dnsrec.Record, 0, len(stored))
	for _, k := range stored {
		records = append(records, dnsrec.Key{Selector: k.Selector, Algorithm: k.Algorithm, Public: k.Public}.Record(domain))
	}
	return records, nil
}

// publicKey returns the value of the p= tag: the raw key for Ed25519, a
// SubjectPublicKeyInfo for RSA.
func publicKey(key crypto.Signer) ([]byte, error) {
	if ed, ok := key.Public().(ed25519.PublicKey); ok {
		return ed, nil
	}
	return x509.MarshalPKIXPublicKey(key.Public())
}
