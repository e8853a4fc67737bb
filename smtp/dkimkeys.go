package smtp

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

	"github.com/postroom/postroom/store"
)

// The selectors of the keys that EnsureKeys makes.
const (
	selectorRSA     = "postroom-rsa"
	selectorEd25519 = "postroom-ed25519"
)

// DKIMKeyStore keeps signing keys. Store is one.
type DKIMKeyStore interface {
	DKIMKeys
	AddDKIMKeys(ctx context.Context, keys ...store.DKIMKey) error
}

// EnsureKeys makes an RSA-2048 and an Ed25519 key for domain, unless it has
// keys. When nodes start together, the keys of the first stay.
func EnsureKeys(ctx context.Context, keys DKIMKeyStore, domain string) error {
	domain = strings.ToLower(domain)
	have, err := keys.DKIMKeys(ctx, domain)
	if err != nil || len(have) > 0 {
		return err
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make a DKIM key: %w", err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make a DKIM key: %w", err)
	}
	made := []store.DKIMKey{
		{Domain: domain, Selector: selectorRSA, Algorithm: "rsa"},
		{Domain: domain, Selector: selectorEd25519, Algorithm: "ed25519"},
	}
	for i, key := range []crypto.PrivateKey{rsaKey, edKey} {
		if made[i].Private, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return fmt.Errorf("make a DKIM key: %w", err)
		}
	}
	return keys.AddDKIMKeys(ctx, made...)
}

// Record is a DNS record to publish.
type Record struct {
	Name  string // without a dot at the end
	Type  string
	Value string // of TXT: the whole value; see SplitTXT
}

// Records returns the TXT records with the public keys of domain (RFC 6376
// section 3.6.1, RFC 8463 section 4). None when it has no keys.
func Records(ctx context.Context, keys DKIMKeys, domain string) ([]Record, error) {
	domain = strings.ToLower(domain)
	stored, err := keys.DKIMKeys(ctx, domain)
	if err != nil {
		return nil, err
	}
	records := make([]Record, 0, len(stored))
	for _, k := range stored {
		key, err := parseSigningKey(k)
		if err != nil {
			return nil, err
		}
		public, err := publicKey(key)
		if err != nil {
			return nil, fmt.Errorf("DKIM key %s of %s: %w", k.Selector, domain, err)
		}
		records = append(records, Record{
			Name:  k.Selector + "._domainkey." + domain,
			Type:  "TXT",
			Value: "v=DKIM1; k=" + k.Algorithm + "; p=" + base64.StdEncoding.EncodeToString(public),
		})
	}
	return records, nil
}

// publicKey is what stands in p=: the bare key for Ed25519, and a
// SubjectPublicKeyInfo for RSA.
func publicKey(key crypto.Signer) ([]byte, error) {
	if ed, ok := key.Public().(ed25519.PublicKey); ok {
		return ed, nil
	}
	return x509.MarshalPKIXPublicKey(key.Public())
}

// SplitTXT cuts the value of a TXT record into the strings of at most 255 bytes
// that it is made of (RFC 1035 section 3.3.14). Readers put them together
// without anything between.
func SplitTXT(value string) []string {
	var parts []string
	for len(value) > 255 {
		parts, value = append(parts, value[:255]), value[255:]
	}
	return append(parts, value)
}
