package feedback

import "strings"

// ReturnName is the local part of return paths before the "+" and the token.
const ReturnName = "bounce"

// ReturnPath returns the reverse-path for a message to one recipient (variable
// envelope return path). Reports about the message go to it. The local part is
// shorter than 64 characters (RFC 5321 section 4.5.3.1.1).
func (s *Signer) ReturnPath(to Sent, domain string) string {
	body := putNumbers(to.Account, to.Message, to.Recipient)
	return ReturnName + "+" + base32Lower.EncodeToString(s.sealed(forReturn, returnMAC, body)) + "@" + domain
}

// ReadReturnTag reads the tag after the "+" of a return path. isToken reports
// whether it has the form of a token. A token that is not ok is forged or
// damaged; any other tag is not ours.
func (s *Signer) ReadReturnTag(tag string) (to Sent, isToken, ok bool) {
	tag = strings.ToLower(tag)
	b, err := base32Lower.DecodeString(tag)
	if err != nil || len(b) < returnMAC+3 {
		return Sent{}, false, false
	}
	body, ok := s.open(forReturn, returnMAC, b)
	if !ok || base32Lower.EncodeToString(b) != tag { // the last character has unused bits
		return Sent{}, true, false
	}
	rest, ok := takeNumbers(body, &to.Account, &to.Message, &to.Recipient)
	return to, true, ok && len(rest) == 0
}

// FindReturnPath reads a whole return path, with or without angle brackets. It
// ignores the domain.
func (s *Signer) FindReturnPath(path string) (Sent, bool) {
	local, _, _ := strings.Cut(strings.Trim(path, "<> \t"), "@")
	name, tag, _ := strings.Cut(local, "+")
	if !strings.EqualFold(name, ReturnName) {
		return Sent{}, false
	}
	to, _, ok := s.ReadReturnTag(tag)
	return to, ok
}
