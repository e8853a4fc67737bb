package mailauth

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/mail/mime"
)

// maxSignatures is the maximum number of verified signatures per message. The
// first ones in the header are the newest.
const maxSignatures = 10

// Signature is the result of one DKIM-Signature field. Result is Pass, Fail,
// Policy, None, TempError or PermError:
//
//   - Fail: the body or a signed field was changed, or the signature has
//     expired (x=).
//   - Policy: the signature is correct but too weak: it uses rsa-sha1 or a
//     short key (RFC 8301), the body is longer than l=, or a From field is not
//     signed.
//   - None: the domain is only testing (t=y), which counts as no signature (RFC
//     6376 section 3.6.1).
//   - PermError: the signature or its key cannot be read, or the key does not
//     exist.
type Signature struct {
	Result    Result
	Domain    string // d=, lower case, A-labels
	Selector  string // s=
	Identity  string // i=, or "@" and the domain
	Algorithm string // a=
	Value     string // the first characters of b=, which distinguish signatures
	Reason    string // what is wrong; empty if Result is Pass
	// SignsFrom reports whether the signature covers every From field. A
	// signature that does not never passes.
	SignsFrom bool
}

// dkimCheck is a signature while it is being verified.
type dkimCheck struct {
	Signature

	tags    tagList
	key     string // DNS name of the public key
	service keyUse
	digest  []byte // of the signed fields
	value   []byte // b=
	body    *bodyHash
	bh      []byte
	expires time.Time
}

// keyUse is what a public key must allow.
type keyUse struct {
	kind, hash   string // "rsa", "sha256"
	inSubdomains bool   // i= is in a subdomain of d=
}

// scanSignatures reads the signatures of a header and hashes the fields that
// they sign. more is the number of signatures beyond the limit.
func scanSignatures(fields []mime.Field) (checks []*dkimCheck, more int) {
	var index fieldIndex
	for _, f := range fields {
		if !f.Is("dkim-signature") {
			continue
		}
		if len(checks) == maxSignatures {
			more++
			continue
		}
		if index == nil {
			index = indexFields(fields)
		}
		checks = append(checks, scanSignature(f, index))
	}
	return checks, more
}

// scanSignature does the part that needs neither the body nor the DNS. If it
// sets a result, that result is final.
func scanSignature(f mime.Field, index fieldIndex) *dkimCheck {
	c := &dkimCheck{}
	if reason := c.read(string(f.Value())); reason != "" {
		c.Result, c.Reason = PermError, reason
		return c
	}
	if c.service.hash == "sha1" {
		c.Result, c.Reason = Policy, "signed with rsa-sha1"
		return c
	}
	header, body := canonicalization(c.tags["c"])
	signed := splitList(c.tags["h"])
	sum := sha256.New()
	fromSigned := index.hash(sum, signed, header)
	hashOwnField(sum, f, header)
	c.digest = sum.Sum(nil)
	c.SignsFrom = fromSigned && len(index["from"]) > 0
	c.body = newBodyHash(body, c.tags["l"])
	return c
}

// read parses a signature (RFC 6376 section 6.1.1). It returns what is wrong
// with it, or "".
func (c *dkimCheck) read(value string) string {
	tags, ok := parseTags(value)
	if !ok {
		return "cannot be read"
	}
	c.tags = tags
	c.Algorithm = strings.ToLower(tags["a"])
	c.Selector = tags["s"]
	c.Value = tags["b"][:min(8, len(tags["b"]))]
	domain, ok := asciiDomain(tags["d"])
	if !ok {
		return "names no domain"
	}
	c.Domain = domain
	for _, name := range []string{"v", "a", "b", "bh", "d", "h", "s"} {
		if tags[name] == "" {
			return "has no " + name + "="
		}
	}
	selector, ok := asciiDomain(c.Selector)
	if !ok || !isQueryable(selector+"._domainkey."+domain) {
		return "names no selector"
	}
	c.key = selector + "._domainkey." + domain
	for _, check := range []func() string{c.readVersion, c.readIdentity, c.readMethods, c.readTimes, c.readHashes} {
		if reason := check(); reason != "" {
			return reason
		}
	}
	return ""
}

func (c *dkimCheck) readVersion() string {
	if c.tags["v"] != "1" {
		return "is of another version"
	}
	switch c.Algorithm {
	case "rsa-sha256", "rsa-sha1", "ed25519-sha256":
		c.service.kind, c.service.hash, _ = strings.Cut(c.Algorithm, "-")
		return ""
	}
	return "has an unknown algorithm"
}

// readIdentity reads i=, which must be in d= or a subdomain of it.
func (c *dkimCheck) readIdentity() string {
	c.Identity = "@" + c.Domain
	i, ok := c.tags["i"]
	if !ok {
		return ""
	}
	_, host := cutAddress(i)
	host, ok = asciiDomain(host)
	if !ok || !strings.Contains(i, "@") || host != c.Domain && !strings.HasSuffix(host, "."+c.Domain) {
		return "is for another domain than its own"
	}
	c.Identity, c.service.inSubdomains = i, host != c.Domain
	return ""
}

func (c *dkimCheck) readMethods() string {
	if q, ok := c.tags["q"]; ok && !containsFold(splitList(q), "dns/txt") {
		return "has its key in an unknown place"
	}
	if header, body := canonicalization(c.tags["c"]); header == unknownForm || body == unknownForm {
		return "has an unknown canonicalization"
	}
	if !containsFold(splitList(c.tags["h"]), "from") {
		return "does not sign From"
	}
	return ""
}

// readTimes reads t= and x=, in seconds since 1970.
func (c *dkimCheck) readTimes() string {
	made, hasMade, ok1 := c.seconds("t")
	expires, hasExpires, ok2 := c.seconds("x")
	if !ok1 || !ok2 || hasMade && hasExpires && expires <= made {
		return "has impossible times"
	}
	if hasExpires {
		c.expires = time.Unix(expires, 0)
	}
	return ""
}

func (c *dkimCheck) seconds(tag string) (n int64, has, ok bool) {
	s, has := c.tags[tag]
	if !has {
		return 0, false, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, true, err == nil && isNumber(s) && len(s) <= 12
}

// readHashes decodes b= and bh=, and checks that l= is a number.
func (c *dkimCheck) readHashes() string {
	var ok bool
	if c.value, ok = decodeBase64(c.tags["b"]); !ok {
		return "has a broken b="
	}
	if c.bh, ok = decodeBase64(c.tags["bh"]); !ok {
		return "has a broken bh="
	}
	if l, has := c.tags["l"]; has && (!isNumber(l) || len(l) > 76) {
		return "has a broken l="
	}
	return ""
}

// hashBody reads a body once for all signatures. Signatures with the same
// canonicalization and length share a hash.
func hashBody(body io.Reader, checks []*dkimCheck) error {
	var forms []*canonicalBody
	for _, c := range checks {
		if c.body == nil {
			continue
		}
		i := slices.IndexFunc(forms, func(b *canonicalBody) bool { return b.form == c.body.form })
		if i < 0 {
			i = len(forms)
			forms = append(forms, newCanonicalBody(c.body.form))
		}
		c.body = forms[i].share(c.body)
	}
	if len(forms) == 0 {
		return nil
	}
	return readBody(body, forms)
}

// checkBody sets the result if the signature has expired or the body does not
// match.
func (c *dkimCheck) checkBody(now time.Time) {
	switch {
	case c.Result != "":
	case !c.expires.IsZero() && now.After(c.expires):
		c.Result, c.Reason = Fail, "expired"
	case c.body.short() || !bytes.Equal(c.body.sum.Sum(nil), c.bh):
		c.Result, c.Reason = Fail, "the body was changed"
	}
}
