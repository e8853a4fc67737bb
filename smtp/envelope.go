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
}

// splitAddress cuts a forward-path, in lower case, into local part, tag and
// domain. The last "@" counts: go-smtp takes the quotes off a quoted local
// part, so one such as "u@example.org"@ours has another before it. The tag is
// what follows the first "+"; nil without one.
func splitAddress(rcpt string) (local string, tag *string, domain string) {
	rcpt = strings.ToLower(rcpt)
	at := strings.LastIndexByte(rcpt, '@')
	if at < 0 {
		return rcpt, nil, ""
	}
	local, domain = rcpt[:at], rcpt[at+1:]
	if name, t, ok := strings.Cut(local, "+"); ok {
		local = name
		if t != "" {
			tag = &t
		}
	}
	return local, tag, domain
}
