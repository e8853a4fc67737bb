package feedback

import "strings"

// ReturnName is the local part of return paths, before the "+" and the token.
const ReturnName = "bounce"

// ReturnPath is the address that reports about a mail to one recipient are to
// come to (variable envelope return path): the reverse-path of its envelope. The
// local part has less than 64 characters, as RFC 5321 section 4.5.3.1.1 wants it.
func (s *Signer) ReturnPath(to Sent, domain string) string {
	body := putNumbers(to.Account, to.Message, to.Recipient)
	return ReturnName + "+" + base32Lower.EncodeToString(s.sealed(forReturn, returnMAC, body)) + "@" + domain
}

// ReadReturnTag reads what stands behind the "+" of a return path. isToken says
// whether it is of the form of our tokens at all: a tag of another kind may be
// anybody's, one that is and is not ok was forged or damaged.
func (s *Signer) ReadReturnTag(tag string) (to Sent, isToken, ok bool) {
	tag = strings.ToLower(tag)
	b, err := base32Lower.DecodeString(tag)
	if err != nil || len(b) < returnMAC+3 {
		return Sent{}, false, false
	}
	body, ok := s.open(forReturn, returnMAC, b)
	if !ok || base32Lower.EncodeToString(b) != tag { // the last character has bits that mean nothing
		return Sent{}, true, false
	}
	rest, ok := takeNumbers(body, &to.Account, &to.Message, &to.Recipient)
	return to, true, ok && len(rest) == 0
}

// FindReturnPath reads a whole return path, with or without angle brackets,
// whatever its domain.
func (s *Signer) FindReturnPath(path string) (Sent, bool) {
	local, _, _ := strings.Cut(strings.Trim(path, "<> \t"), "@")
	name, tag, _ := strings.Cut(local, "+")
	if !strings.EqualFold(name, ReturnName) {
		return Sent{}, false
	}
	to, _, ok := s.ReadReturnTag(tag)
	return to, ok
}
