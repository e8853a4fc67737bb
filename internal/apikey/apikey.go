// Package apikey creates the secrets of API keys and selects the parts of a secret that may
// be shown.
//
// A secret has the form <brand>_<mode>_<36 random characters><6 characters of checksum>, such
// as sk_live_…, so that a scanner for leaked secrets can recognise it without a request. A key
// is found by the hash of its whole secret. Nothing here decides whether a key is valid, and a
// key that an operator chose need not have this form.
package apikey

import (
	"crypto/rand"
	"hash/crc32"
	"regexp"
	"strings"
)

// DefaultBrand begins the secrets of an installation without its own brand.
const DefaultBrand = "sk"

const (
	digits    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	randomLen = 36 // 214 bits
	sumLen    = 6  // enough for any 32-bit number in base 62
	shownLen  = 4  // characters of the secret part that Prefix and Hint show
)

var form = regexp.MustCompile(`^[a-z0-9]{1,16}_[a-z]{4,5}_`)

// New returns a new secret that begins with brand, for a key with the mode live, test or
// restricted (in the secret: restr).
func New(mode, brand string) string {
	if mode == "restricted" {
		mode = "restr"
	}
	body := brand + "_" + mode + "_" + random(randomLen)
	return body + checksum(body)
}

// WellFormed reports whether secret has the form and the checksum of a secret from New.
func WellFormed(secret string) bool {
	start := form.FindString(secret)
	if len(secret) != len(start)+randomLen+sumLen || start == "" {
		return false
	}
	body := secret[:len(secret)-sumLen]
	return secret == body+checksum(body) && strings.Trim(body[len(start):], digits) == ""
}

// Prefix returns the beginning of a secret, enough to recognise it in a list of keys: the
// brand, the mode and 4 characters. For a secret in another form it is 4 characters.
func Prefix(secret string) string {
	return first(secret, len(form.FindString(secret))+shownLen)
}

// Hint returns the end of a secret: an ellipsis and its last 4 characters.
func Hint(secret string) string {
	r := []rune(secret)
	return "…" + string(r[max(0, len(r)-shownLen):])
}

func first(s string, n int) string {
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func random(n int) string {
	// The largest multiple of 62 in a byte: larger values would favour the first
	// digits.
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

// checksum returns the CRC-32 (IEEE) of s in base 62, most significant digit first.
func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var out [sumLen]byte
	for i := sumLen - 1; i >= 0; i-- {
		out[i] = digits[sum%uint32(len(digits))]
		sum /= uint32(len(digits))
	}
	return string(out[:])
}
