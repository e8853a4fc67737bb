package feedback

import (
	"net/url"
	"strings"
)

// Paths of the links below the base address of the API; the token follows.
const (
	UnsubscribePath = "/u/"
	OpenPath        = "/t/o/"
	ClickPath       = "/t/c/"
)

// Subscription is a recipient who can unsubscribe. It names the address itself,
// so that the link works when the mail is long deleted.
type Subscription struct {
	Account, Message int64  // sequence numbers; the mail that the link stands in
	Email            string // of the recipient
}

// Unsubscribe is the token of the link by which a recipient unsubscribes.
func (s *Signer) Unsubscribe(sub Subscription) string {
	return s.link(forUnsubscribe, append(putNumbers(sub.Account, sub.Message), sub.Email...))
}

// ReadUnsubscribe returns who a token unsubscribes.
func (s *Signer) ReadUnsubscribe(token string) (sub Subscription, ok bool) {
	body, ok := s.readLink(forUnsubscribe, token)
	if !ok {
		return Subscription{}, false
	}
	email, ok := takeNumbers(body, &sub.Account, &sub.Message)
	sub.Email = string(email)
	return sub, ok && len(email) > 0
}

// UnsubscribeFields are the header fields of a marketing mail by which its reader
// unsubscribes (RFC 2369 section 3.2), and with one click where base is an https
// address (RFC 8058 section 3.1).
func (s *Signer) UnsubscribeFields(base *url.URL, sub Subscription) string {
	link := base.JoinPath(UnsubscribePath, s.Unsubscribe(sub))
	fields := "List-Unsubscribe: <" + link.String() + ">\r\n"
	if strings.EqualFold(base.Scheme, "https") {
		fields += "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
	}
	return fields
}

// Tracked is a mail to one recipient whose links tell of opens and clicks.
type Tracked struct {
	Account int64  // sequence number
	ID      string // of the mail, as the API has it
}

// Open is the token of the picture that tells of an open.
func (s *Signer) Open(t Tracked) string {
	return s.link(forOpen, append(putNumbers(t.Account), t.ID...))
}

// ReadOpen returns the mail that was opened.
func (s *Signer) ReadOpen(token string) (t Tracked, ok bool) {
	body, ok := s.readLink(forOpen, token)
	if !ok {
		return Tracked{}, false
	}
	id, ok := takeNumbers(body, &t.Account)
	t.ID = string(id)
	return t, ok
}

// Click is the token of a link of the mail: it leads to target and nowhere else.
func (s *Signer) Click(t Tracked, target string) string {
	body := append(putNumbers(t.Account, int64(len(t.ID))), t.ID...)
	return s.link(forClick, append(body, target...))
}

// ReadClick returns the mail whose link was followed, and where it leads: to an
// address of http or https.
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

// maxTarget is the longest address that is followed, in bytes.
const maxTarget = 4096

// IsWeb says whether a link leads to a web page: an http or https address with a
// host, and nothing in it that could be taken for another.
func IsWeb(target string) bool {
	if len(target) > maxTarget || strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return false
	}
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}
