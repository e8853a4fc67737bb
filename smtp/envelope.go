package smtp

import "strings"

// Envelope holds the facts of an SMTP transaction, which may differ from the
// message's header.
type Envelope struct {
	MailFrom   string   // reverse-path; "" is the null reverse-path
	RcptTo     []string // as the client wrote them, tags included
	RemoteAddr string   // IP address of the client; "" for our own queue
	HELO       string   // name from the client's HELO or EHLO; not verified
	TLS        bool     // the transaction was encrypted
	UTF8       bool     // the client asked for SMTPUTF8 (RFC 6531)
	Account    int64    // the account that sent the message through our own queue; else 0
}

// SplitAddress splits a forward-path, in lower case, into local part, tag and
// domain. Unnecessary quotes are removed from the local part; the content of
// necessary ones is kept, even an "@". The tag follows the first "+"; it is nil
// without one. The domain is returned in A-label form, "" if it has none.
func SplitAddress(rcpt string) (local string, tag *string, domain string) {
	local, domain, ok := splitMailbox(strings.ToLower(rcpt))
	if !ok {
		return strings.ToLower(rcpt), nil, ""
	}
	if !IsASCII(domain) {
		domain, _ = ASCIIDomain(domain) // "" matches none of our domains
	}
	local = unquote(local)
	if name, t, ok := strings.Cut(local, "+"); ok {
		local = name
		if t != "" {
			tag = &t
		}
	}
	return local, tag, domain
}
