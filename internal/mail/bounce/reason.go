package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Reason is the cause of a failed delivery.
type Reason string

// The reasons. A bounce is hard only if the address is wrong.
const (
	ReasonNone      Reason = ""                  // the report gives no known reason
	ReasonNoMailbox Reason = "no_mailbox"        // hard: the user does not exist
	ReasonNoDomain  Reason = "no_domain"         // hard: the domain does not exist, or accepts no mail
	ReasonMoved     Reason = "moved"             // hard: the user has moved
	ReasonFull      Reason = "mailbox_full"      // over quota
	ReasonDisabled  Reason = "mailbox_disabled"  // suspended, frozen or long unused
	ReasonTooLarge  Reason = "too_large"         // the message, for the mailbox or the server
	ReasonSender    Reason = "sender_rejected"   // our address, or our permission to use it
	ReasonUnproven  Reason = "not_authenticated" // SPF, DKIM, DMARC, reverse DNS, TLS
	ReasonBlocked   Reason = "blocked"           // our server: block lists, reputation
	ReasonRate      Reason = "rate_limited"      // too many messages or connections
	ReasonContent   Reason = "content_rejected"  // spam, viruses, forbidden or malformed content
	ReasonRefused   Reason = "refused"           // recipient's wish or a policy
	ReasonRelay     Reason = "relay_denied"      // the server does not accept mail for the domain
	ReasonExpired   Reason = "expired"           // retried for too long
	ReasonNetwork   Reason = "network"           // routes, names, loops
	ReasonSystem    Reason = "system"            // fault of the remote server
)

// hard reports whether r means that the address is wrong.
func (r Reason) hard() bool {
	return r == ReasonNoMailbox || r == ReasonNoDomain || r == ReasonMoved
}

// reasonOf returns the reason that a server's text gives.
func reasonOf(text string) Reason {
	if text = plainWords(text); text == "" {
		return ReasonNone
	}
	for _, r := range phrases().reasons {
		for _, pattern := range r.list {
			if inOrder(text, pattern) {
				return r.reason
			}
		}
	}
	return ReasonNone
}

// inOrder reports whether text contains the pieces of pattern, split at "*", in
// order. A space may belong to two pieces, so that "box * full" is in "box full".
func inOrder(text, pattern string) bool {
	for {
		piece, more, ok := strings.Cut(pattern, "*")
		at := strings.Index(text, piece)
		if at < 0 {
			return false
		}
		if !ok {
			return true
		}
		text, pattern = text[at+len(strings.TrimSuffix(piece, " ")):], more
	}
}

// maxSaid limits how much of a server's text is read, in bytes.
const maxSaid = 4 << 10

// plainWords returns the words of text in lower case, with one space around
// each. It replaces addresses with "@", and with "@..." those followed by three
// dots, and removes links and the codes of
// continued replies, so that the names in them do not match.
func plainWords(text string) string {
	words := strings.Fields(strings.ToLower(plaintext.Truncate(text, maxSaid)))
	var b strings.Builder
	b.WriteByte(' ')
	for _, w := range words {
		dots := strings.HasSuffix(w, "...")
		switch {
		case strings.Contains(w, "://"), strings.HasPrefix(w, "www."), isContinuation(w):
			continue
		case strings.IndexByte(w, '@') >= 0:
			w = "@"
			if dots {
				w = "@..."
			}
		}
		b.WriteString(strings.ReplaceAll(w, "’", "'"))
		b.WriteByte(' ')
	}
	return b.String()
}

// isContinuation reports whether w starts a line of a multiline reply: "550-"
// or "550-5.7.1".
func isContinuation(w string) bool {
	if len(w) < 4 || w[3] != '-' || replyCode(w[:3]) == 0 {
		return false
	}
	return strings.Trim(w[4:], "0123456789.") == ""
}

// isWish reports whether the recipient exists but does not want the message.
func isWish(text string) bool { return containsAny(text, phrases().wish) }
