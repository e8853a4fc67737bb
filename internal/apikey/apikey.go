// Package apikey makes the secrets of API keys and says what of a secret may
// be shown.
//
// A secret reads <brand>_<mode>_<36 random characters><6 characters of
// checksum>, such as sk_live_…, so that a scanner for leaked secrets can tell
// one from other text without asking us. A key is found by the hash of its
// whole secret: nothing here decides whether a key is good, and a key that an
// operator chose need not have this form.
package apikey

import (
	"crypto/rand"
	"hash/crc32"
	"regexp"
	"strings"
)

// DefaultBrand begins the secrets of an install that has not chosen a brand.
const DefaultBrand = "sk"

const (
	digits    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomLen = 36 // 214 bits
	sumLen    = 6  // holds any 32-bit number in base 62
	shownLen  = 4  // characters of the secret part that Prefix and Hint show
)

var form = regexp.MustCompile(`^[a-z0-9]{1,16}_[a-z]{4,5}_`)

// New returns a new secret for a key of the mode live, test or restricted (in
// the secret: restr), beginning with brand.
func New(mode, brand string) string {
	if mode == "restricted" {
		mode = "restr"
	}
	body := brand + "_" + mode + "_" + random(randomLen)
	return body + checksum(body)
}

// WellFormed tells whether secret has the form and the checksum of one that New
// made.
func WellFormed(secret string) bool {
	start := form.FindString(secret)
	if len(secret) != len(start)+randomLen+sumLen || start == "" {
		return false
	}
	body := secret[:len(secret)-sumLen]
	return secret == body+checksum(body) && strings.Trim(body[len(start):], digits) == ""
}

// Prefix is how a secret begins, enough to recognise it in a list of keys: the
// brand, the mode and 4 characters. Of a secret in another form it is 4
// characters.
func Prefix(secret string) string {
	return first(secret, len(form.FindString(secret))+shownLen)
}

// Hint is how a secret ends: an ellipsis and its last 4 characters.
func Hint(secret string) string {
	r := []rune(secret)
	return "…" + string(r[max(0, len(r)-shownLen):])
}

func first(s string, n int) string {
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func random(n int) string {
	// The largest multiple of 62 in a byte: what lies above would favour the
	// first digits.
	const fair = 256 / len(digits) * len(digits)
	out := make([]byte, 0, n)
	buf := make([]byte, 2*n)
	for len(out) < n {
		_, _ = rand.Read(buf) // crypto/rand never fails
		for _, b := range buf {
			if int(b) < fair && len(out) < n {
				out = append(out, digits[int(b)%len(digits)])
			}
		}
	}
	return string(out)
}

// checksum is the CRC-32 (IEEE) of s in base 62, most significant digit first.
func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var out [sumLen]byte
	for i := sumLen - 1; i >= 0; i-- {
		out[i] = digits[sum%uint32(len(digits))]
		sum /= uint32(len(digits))
	}
	return string(out[:])
}
