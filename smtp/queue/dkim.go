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

// DKIMKeys provides the signing keys of a domain. Store implements it.
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

// ownDomain is the domain of an account, or of store.TheInstall. If another
// account verifies the domain later, it has its own keys.
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

// NewSigner returns a signer that caches parsed keys for a minute. now is the
// clock; nil means time.Now.
func NewSigner(keys DKIMKeys, now func() time.Time) *Signer {
	if now == nil {
		now = time.Now
	}
	return &Signer{keys: keys, now: now, parsed: map[ownDomain]parsedKeys{}}
}

// Sign reads a message once and returns one DKIM-Signature field for each of the
// account's keys of the domain, to be put before the message. It returns an error
// if the domain has no keys, so that no message is sent unsigned. Memory use does
// not depend on the size of the body.
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
		clear(s.parsed) // entries expire after a minute anyway
	}
	s.parsed[domain] = parsedKeys{keys, now.Add(keysTTL)}
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
