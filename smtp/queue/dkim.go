package queue

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// DKIMKeys is where the signing keys of a domain are. Store is one.
type DKIMKeys interface {
	DKIMKeys(ctx context.Context, accountID int64, domain string) ([]store.DKIMKey, error)
}

// Signer signs mail with all keys of its domain (DKIM, RFC 6376; Ed25519, RFC
// 8463). It is safe for use by many goroutines.
type Signer struct {
	keys DKIMKeys
	now  func() time.Time

	mu     sync.Mutex
	parsed map[ownDomain]parsedKeys // at most maxParsed
}

// ownDomain is a domain of an account, or of store.TheInstall. Another account
// that has the domain later has keys of its own.
type ownDomain struct {
	account int64
	name    string
}

type parsedKeys struct {
	keys  []signingKey
	until time.Time
}

type signingKey struct {
	selector string
	key      crypto.Signer
}

// NewSigner returns a signer that keeps parsed keys for a minute. now is the
// clock; nil means time.Now.
func NewSigner(keys DKIMKeys, now func() time.Time) *Signer {
	if now == nil {
		now = time.Now
	}
	return &Signer{keys: keys, now: now, parsed: map[ownDomain]parsedKeys{}}
}

// Sign reads a message once and returns the DKIM-Signature fields to put in
// front of it: one for each key that the account has for domain. It returns an
// error if the domain has no keys, so that no message goes out unsigned. Memory
// does not grow with the body.
func (s *Signer) Sign(ctx context.Context, accountID int64, domain string, raw io.Reader) (string, error) {
	domain = strings.ToLower(domain)
	keys, err := s.keysOf(ctx, ownDomain{accountID, domain})
	if err != nil {
		return "", err
	}
	if len(keys) == 0 {
		return "", fmt.Errorf("DKIM: %s has no key that signs", domain)
	}
	return sign(domain, keys, raw)
}

// keysOf returns the parsed keys of a domain.
func (s *Signer) keysOf(ctx context.Context, domain ownDomain) ([]signingKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if p, ok := s.parsed[domain]; ok && now.Before(p.until) {
		return p.keys, nil
	}
	stored, err := s.keys.DKIMKeys(ctx, domain.account, domain.name)
	if err != nil {
		return nil, err
	}
	keys := make([]signingKey, 0, len(stored))
	for _, k := range stored {
		key, err := parseSigningKey(k)
		if err != nil {
			return nil, err
		}
		keys = append(keys, signingKey{k.Selector, key})
	}
	if len(s.parsed) >= maxParsed {
		clear(s.parsed) // which is read again in a minute anyway
	}
	s.parsed[domain] = parsedKeys{keys, now.Add(keysLife)}
	return keys, nil
}

func parseSigningKey(k store.DKIMKey) (crypto.Signer, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(k.Private)
	if err != nil {
		// The parser's error may quote the key.
		return nil, fmt.Errorf("DKIM key %s of %s is damaged", k.Selector, k.Domain)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("DKIM key %s of %s is a %T", k.Selector, k.Domain, parsed)
	}
	return key, nil
}
