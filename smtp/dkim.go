package smtp

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/store"
)

const (
	// maxSignedHeader is the largest header that is signed, in bytes.
	maxSignedHeader = 1 << 20
	// keysLife is after how long keys are read again.
	keysLife = time.Minute
	// maxParsed is how many domains' keys are kept.
	maxParsed = 1000
)

// DKIMKeys is where the signing keys of a domain are. Store is one.
type DKIMKeys interface {
	DKIMKeys(ctx context.Context, domain string) ([]store.DKIMKey, error)
}

// Signer signs mail with all keys of its domain (DKIM, RFC 6376; Ed25519, RFC
// 8463). It is safe for use by many goroutines.
type Signer struct {
	keys DKIMKeys
	now  func() time.Time

	mu     sync.Mutex
	parsed map[string]parsedKeys // by domain, at most maxParsed
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
	return &Signer{keys: keys, now: now, parsed: map[string]parsedKeys{}}
}

// signedFields are the header fields that are signed when they are there.
var signedFields = []string{
	"From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "Sender", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Id", "List-Help", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Subscribe", "List-Post", "List-Owner",
	"List-Archive",
}

// oversigned are signed once more than they are there, so that nobody can add
// another one, which readers might show instead (RFC 6376 section 8.15).
var oversigned = []string{"From", "Subject"}

// Sign reads a mail once and returns the DKIM-Signature lines to put in front
// of it: one for each key of domain, relaxed/relaxed. They are empty when the
// domain has no keys. Memory does not grow with the body.
func (s *Signer) Sign(ctx context.Context, domain string, raw io.Reader) (string, error) {
	domain = strings.ToLower(domain)
	keys, err := s.keysOf(ctx, domain)
	if err != nil || len(keys) == 0 {
		return "", err
	}
	body := bufio.NewReaderSize(raw, 32<<10)
	header, names, err := readFields(body)
	if err != nil {
		return "", err
	}
	signers := make([]*dkim.Signer, 0, len(keys))
	writers := make([]io.Writer, 0, len(keys))
	for _, k := range keys {
		signer, err := dkim.NewSigner(&dkim.SignOptions{
			Domain: domain, Selector: k.selector, Signer: k.key, HeaderKeys: fieldsToSign(names),
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
		})
		if err != nil {
			return "", errors.Join(fmt.Errorf("DKIM key %s: %w", k.selector, err), closeAll(signers))
		}
		signers, writers = append(signers, signer), append(writers, signer)
	}
	all := io.MultiWriter(writers...)
	_, err = all.Write(header)
	if err == nil {
		_, err = io.Copy(all, body)
	}
	if err := errors.Join(err, closeAll(signers)); err != nil {
		return "", fmt.Errorf("DKIM: %w", err)
	}
	var lines strings.Builder
	for _, signer := range signers {
		lines.WriteString(signer.Signature())
	}
	return lines.String(), nil
}

// closeAll ends the signers, also after an error: each has a goroutine.
func closeAll(signers []*dkim.Signer) error {
	var errs []error
	for _, s := range signers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// readFields reads a header with its empty line, and the names in it in lower
// case.
func readFields(br *bufio.Reader) (header []byte, names []string, err error) {
	begins := true
	for len(header) <= maxSignedHeader {
		piece, err := br.ReadSlice('\n')
		header = append(header, piece...)
		if begins && len(bytes.TrimRight(piece, "\r\n")) == 0 && err == nil {
			return header, names, nil
		}
		if name, _, ok := bytes.Cut(piece, []byte(":")); begins && ok && name[0] != ' ' && name[0] != '\t' {
			names = append(names, strings.ToLower(string(bytes.TrimRight(name, " \t"))))
		}
		begins = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil, fmt.Errorf("DKIM: read the header: %w", err)
		}
	}
	return nil, nil, errors.New("DKIM: header too large to sign")
}

// fieldsToSign lists the fields that a signature covers: a name as often as it
// is there.
func fieldsToSign(names []string) []string {
	var fields []string
	for _, field := range signedFields {
		n := 0
		for _, name := range names {
			if strings.EqualFold(name, field) {
				n++
			}
		}
		if slices.Contains(oversigned, field) {
			n++
		}
		for range n {
			fields = append(fields, field)
		}
	}
	return fields
}

// keysOf returns the parsed keys of a domain.
func (s *Signer) keysOf(ctx context.Context, domain string) ([]signingKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if p, ok := s.parsed[domain]; ok && now.Before(p.until) {
		return p.keys, nil
	}
	stored, err := s.keys.DKIMKeys(ctx, domain)
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
