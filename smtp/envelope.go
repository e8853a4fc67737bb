package smtp

import "strings"

// Envelope is what an SMTP transaction says about a mail, as opposed to what
// the mail's own header says.
type Envelope struct {
	MailFrom   string   // reverse-path; "" is the null reverse-path
	RcptTo     []string // as the client wrote them, tags included
	RemoteAddr string   // IP address of the client; "" for our own queue
	HELO       string   // what the client called itself; not verified
	TLS        bool     // the transaction was encrypted
	UTF8       bool     // the client asked for SMTPUTF8 (RFC 6531)
	Account    int64    // the account that sent the message through our own queue; else 0
}

// SplitAddress cuts a forward-path, in lower case, into local part, tag and
// domain. Quotes that a local part does not need are taken off; what stands in
// others is kept, even an "@". The tag is what follows the first "+"; nil without
// one. A domain outside ASCII is in its A-label form, "" when it has none.
func SplitAddress(rcpt string) (local string, tag *string, domain string) {
	local, domain, ok := splitMailbox(strings.ToLower(rcpt))
	if !ok {
		return strings.ToLower(rcpt), nil, ""
	}
	if !IsASCII(domain) {
		domain, _ = ASCIIDomain(domain) // "" is no domain of ours
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
