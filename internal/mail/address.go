// Package mail has the types that store, smtp and handlers share, and the rules for
// addresses. The packages below it read and write messages: mime, htmltext, extract,
// reply, bounce and compose.
//
// All of them are pure: bytes in, values out, without network, database or clock.
// All work is linear in the size of the message.
package mail

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Size limits of SMTP in bytes (RFC 5321 section 4.5.3.1).
const (
	maxEmail     = 254
	maxLocalPart = 64
	maxDomain    = 253
	maxLabel     = 63
)

// Address is a mailbox: a display name, which may be empty, and an address.
type Address struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email"`
}

// Addresses are the address fields of a message header. Only outgoing messages
// have Bcc.
type Addresses struct {
	// From is the author: the first address of the From field. It may have only
	// a name, and is nil if the field has neither.
	From    *Address  `json:"from,omitempty"`
	To      []Address `json:"to,omitempty"`
	Cc      []Address `json:"cc,omitempty"`
	Bcc     []Address `json:"bcc,omitempty"`
	ReplyTo []Address `json:"reply_to,omitempty"`
}

// ParseMailbox parses "Ann Example <ann@example.com>" or "ann@example.com". It
// accepts exactly one mailbox, without line breaks or control characters, whose
// address passes ValidAddress. It returns the domain in lower case.
func ParseMailbox(s string) (Address, error) {
	if err := CheckLine(s); err != nil {
		return Address{}, err
	}
	s = strings.TrimSpace(s)
	name, email := "", s
	if strings.HasSuffix(s, ">") {
		open := strings.LastIndexByte(s, '<')
		if open < 0 {
			return Address{}, errors.New("is not an email address")
		}
		email = s[open+1 : len(s)-1]
		var err error
		if name, err = parseName(s[:open]); err != nil {
			return Address{}, err
		}
	}
	if err := ValidAddress(email); err != nil {
		return Address{}, err
	}
	at := strings.LastIndexByte(email, '@')
	return Address{Name: name, Email: email[:at+1] + lowerDomain(email[at+1:])}, nil
}

// parseName parses the display name before an address, quoted or not.
func parseName(s string) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.TrimSpace(plaintext.Unquote(s)), nil
	}
	if strings.ContainsAny(s, `<>"`) {
		return "", errors.New("has a display name that must be quoted")
	}
	return s, nil
}

// lowerDomain returns a valid domain in lower case, with non-ASCII labels in
// the normal form of IDNA.
func lowerDomain(domain string) string {
	if plaintext.IsASCII(domain) {
		return strings.ToLower(domain)
	}
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		if uni, err := idna.Lookup.ToUnicode(ascii); err == nil {
			return uni
		}
	}
	return strings.ToLower(domain)
}

// ValidAddress reports why email is not an address that we send to, or nil if
// it is. The API, SMTP and the store all use it. It follows RFC 5321 section
// 4.1.2 with RFC 6531: it accepts quoted and non-ASCII local parts and domains,
// but not address literals such as "[192.0.2.1]".
func ValidAddress(email string) error {
	if len(email) > maxEmail {
		return fmt.Errorf("is longer than %d bytes", maxEmail)
	}
	if err := CheckLine(email); err != nil {
		return err
	}
	at := strings.LastIndexByte(email, '@')
	if at <= 0 || at == len(email)-1 {
		return errors.New("is not an email address")
	}
	if !validLocalPart(email[:at]) {
		return errors.New("has an invalid local part")
	}
	if !validDomain(email[at+1:]) {
		return errors.New("has an invalid domain")
	}
	return nil
}

// CheckLine returns an error if s is unsafe in a header or an SMTP command.
func CheckLine(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	if strings.IndexFunc(s, plaintext.BreaksLine) >= 0 {
		return errors.New("contains a line break or control character")
	}
	return nil
}

func validLocalPart(s string) bool {
	if len(s) > maxLocalPart {
		return false
	}
	if s[0] == '"' {
		return validQuoted(s)
	}
	dot := true // true to detect a leading dot
	for _, r := range s {
		switch {
		case r == '.':
			if dot {
				return false
			}
			dot = true
			continue
		case !IsAtomText(r):
			return false
		}
		dot = false
	}
	return !dot
}

// IsAtomText reports whether r may occur in an atom (RFC 5322 section 3.2.3,
// RFC 6532 section 3.2).
func IsAtomText(r rune) bool {
	if r < utf8.RuneSelf {
		return plaintext.IsAlnum(byte(r&0x7f)) || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
	}
	return !isOddSpace(r)
}

// isOddSpace reports whether r is invisible, or a space other than the ASCII
// space.
func isOddSpace(r rune) bool {
	switch {
	case r == 0xa0, r == 0x1680, 0x2000 <= r && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000, r == 0xfffd:
		return true
	case r == 0x200c, r == 0x200d:
		return false // some scripts need them
	}
	return plaintext.IsInvisible(r)
}

// validQuoted reports whether s is a non-empty quoted string.
func validQuoted(s string) bool {
	if len(s) < 3 || s[len(s)-1] != '"' {
		return false
	}
	inner := s[1 : len(s)-1]
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '"':
			return false
		case '\\':
			if i++; i == len(inner) {
				return false
			}
		}
	}
	return strings.IndexFunc(inner, isOddSpace) < 0
}

// validDomain reports whether s is a host name: LDH labels, or labels that are
// valid under IDNA 2008.
func validDomain(s string) bool {
	if !plaintext.IsASCII(s) {
		if strings.IndexFunc(s, isOddSpace) >= 0 { // IDNA would drop them
			return false
		}
		ascii, err := idna.Lookup.ToASCII(s)
		if err != nil {
			return false
		}
		s = ascii
	}
	if len(s) > maxDomain {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if !validLabel(label) {
			return false
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != "" // otherwise it is an IP address
}

func validLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if !plaintext.IsAlnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}
