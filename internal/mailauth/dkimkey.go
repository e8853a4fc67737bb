package mailauth

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"strings"

	"github.com/postroom/postroom/internal/dns"
)

// RSA key sizes in bits. Shorter keys are insecure (RFC 8301 section 3.2);
// longer ones only cost time.
const (
	minRSABits = 1024
	maxRSABits = 8192
)

// verify looks up the key of a signature without a result and sets the result
// (RFC 6376 sections 6.1.2 and 6.1.3).
func (c *dkimCheck) verify(ctx context.Context, r dns.Resolver) {
	if c.Result != "" {
		return
	}
	texts, err := lookupTXT(ctx, r, c.key)
	if err != nil {
		c.Result, c.Reason = TempError, "the DNS did not respond for the key"
		return
	}
	key, result, reason := chooseKey(texts, c.service)
	switch {
	case result != "":
		c.Result, c.Reason = result, reason
	case key.testing:
		c.Result, c.Reason = None, "the domain is testing"
	case !key.check(c.digest, c.value):
		c.Result, c.Reason = Fail, "the signed fields were changed, or the signature is forged"
	case c.body.over:
		c.Result, c.Reason = Policy, "the body goes on after what is signed"
	case !c.SignsFrom:
		c.Result, c.Reason = Policy, "a From field is not signed"
	default:
		c.Result = Pass
	}
}

// publicKey is a key record (RFC 6376 section 3.6.1). It holds one of the two
// keys.
type publicKey struct {
	rsa     *rsa.PublicKey
	ed25519 ed25519.PublicKey
	testing bool
}

func (k publicKey) check(digest, signature []byte) bool {
	if k.ed25519 != nil {
		return ed25519.Verify(k.ed25519, digest, signature) // RFC 8463 section 3
	}
	return rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, digest, signature) == nil
}

// chooseKey returns the key in the TXT records of its name, or a result and
// reason if there is none. It ignores records without a key.
func chooseKey(texts []string, use keyUse) (key publicKey, result Result, reason string) {
	found := 0
	for _, text := range texts {
		tags, ok := parseTags(text)
		if _, has := tags["p"]; !ok || !has {
			continue
		}
		found++
		key, result, reason = readKey(tags, use)
	}
	switch found {
	case 0:
		return key, PermError, "the DNS has no key"
	case 1:
		return key, result, reason
	}
	return key, PermError, "there are several keys of that name"
}

// readKey parses a key record and checks that the key may be used for use.
func readKey(tags tagList, use keyUse) (key publicKey, result Result, reason string) {
	if v, ok := tags["v"]; ok && v != "DKIM1" {
		return key, PermError, "the key is of another version"
	}
	if tags["p"] == "" {
		return key, PermError, "the key is revoked"
	}
	kind := cmp.Or(strings.ToLower(tags["k"]), "rsa")
	flags := splitList(strings.ToLower(tags["t"]))
	services, limited := tags["s"]
	hashes, hashed := tags["h"]
	switch {
	case kind != use.kind:
		return key, PermError, "the key is of another algorithm"
	case hashed && !containsFold(splitList(hashes), use.hash):
		return key, PermError, "the key is for another hash"
	case limited && !containsFold(splitList(services), "*") && !containsFold(splitList(services), "email"):
		return key, PermError, "the key is not for mail"
	case use.inSubdomains && containsFold(flags, "s"):
		return key, PermError, "the key is not for subdomains"
	}
	key.testing = containsFold(flags, "y")
	result, reason = key.decode(tags["p"], kind)
	return key, result, reason
}

// decode decodes p=: raw for Ed25519; a SubjectPublicKeyInfo or an RSAPublicKey
// for RSA (erratum 3017 of RFC 6376).
func (k *publicKey) decode(p, kind string) (Result, string) {
	const broken = "the key cannot be read"
	der, ok := decodeBase64(p)
	if !ok {
		return PermError, broken
	}
	if kind == "ed25519" {
		if len(der) != ed25519.PublicKeySize {
			return PermError, broken
		}
		k.ed25519 = der
		return "", ""
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		parsed, err = x509.ParsePKCS1PublicKey(der)
	}
	if err != nil {
		return PermError, broken
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return PermError, "the key is of another algorithm"
	}
	k.rsa = key
	switch bits := key.N.BitLen(); {
	case bits < minRSABits:
		return Policy, "the key is too short"
	case bits > maxRSABits:
		return Policy, "the key is too long"
	}
	return "", ""
}
