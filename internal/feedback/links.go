package feedback

import (
	"net/url"
	"strings"
)

// Paths of the links below the base URL of the API. The token follows.
const (
	UnsubscribePath = "/u/"
	OpenPath        = "/t/o/"
	ClickPath       = "/t/c/"
)

// Subscription is a recipient who can unsubscribe. It contains the email
// address, so that the link works after the message is deleted.
type Subscription struct {
	Account, Message int64  // sequence numbers of the account and of the message with the link
	Email            string // address of the recipient
}

// Unsubscribe returns the token of an unsubscribe link.
func (s *Signer) Unsubscribe(sub Subscription) string {
	return s.link(forUnsubscribe, append(putNumbers(sub.Account, sub.Message), sub.Email...))
}

// ReadUnsubscribe returns the subscription of a token. ok is false if the token
// is invalid.
func (s *Signer) ReadUnsubscribe(token string) (sub Subscription, ok bool) {
	body, ok := s.readLink(forUnsubscribe, token)
	if !ok {
		return Subscription{}, false
	}
	email, ok := takeNumbers(body, &sub.Account, &sub.Message)
	sub.Email = string(email)
	return sub, ok && len(email) > 0
}

// UnsubscribeFields returns the List-Unsubscribe header fields of a marketing
// message (RFC 2369 section 3.2). If base is an https URL, they support
// one-click unsubscription (RFC 8058 section 3.1).
func (s *Signer) UnsubscribeFields(base *url.URL, sub Subscription) string {
	link := base.JoinPath(UnsubscribePath, s.Unsubscribe(sub))
	fields := "List-Unsubscribe: <" + link.String() + ">\r\n"
	if strings.EqualFold(base.Scheme, "https") {
		fields += "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
	}
	return fields
}

// Tracked is a message to one recipient with open and click tracking.
type Tracked struct {
	Account int64  // sequence number
	ID      string // id of the message in the API
}

// Open returns the token of the tracking pixel.
func (s *Signer) Open(t Tracked) string {
	return s.link(forOpen, append(putNumbers(t.Account), t.ID...))
}

// ReadOpen returns the opened message. ok is false if the token is invalid.
func (s *Signer) ReadOpen(token string) (t Tracked, ok bool) {
	body, ok := s.readLink(forOpen, token)
	if !ok {
		return Tracked{}, false
	}
	id, ok := takeNumbers(body, &t.Account)
	t.ID = string(id)
	return t, ok
}

// Click returns the token of a tracked link to target.
func (s *Signer) Click(t Tracked, target string) string {
	body := append(putNumbers(t.Account, int64(len(t.ID))), t.ID...)
	return s.link(forClick, append(body, target...))
}

// ReadClick returns the message and the target of a tracked link. ok is false
// if the token is invalid or target is not an http or https URL.
func (s *Signer) ReadClick(token string) (t Tracked, target string, ok bool) {
	body, ok := s.readLink(forClick, token)
	var size int64
	if ok {
		body, ok = takeNumbers(body, &t.Account, &size)
	}
	if !ok || size < 0 || size > int64(len(body)) {
		return Tracked{}, "", false
	}
	t.ID, target = string(body[:size]), string(body[size:])
	return t, target, IsWeb(target)
}

// maxTarget is the maximum length of a link target in bytes.
const maxTarget = 4096

// IsWeb reports whether target is an http or https URL with a host, without
// user information, spaces, control characters or backslashes.
func IsWeb(target string) bool {
	if len(target) > maxTarget || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return false
	}
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}
