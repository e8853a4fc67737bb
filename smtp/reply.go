package smtp

import (
	"context"
	"errors"
	"syscall"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/store"
)

// reply makes an answer. The texts are constants, so that no answer can show
// what went on inside.
func reply(code, class, subject, detail int, text string) *gosmtp.SMTPError {
	return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{class, subject, detail}, Message: text}
}

// What a client is told (RFC 5321 section 4.2, RFC 3463).
var (
	replyNoInbox      = reply(550, 5, 1, 1, "No such inbox here")
	replyInboxClosed  = reply(550, 5, 2, 1, "Inbox takes no mail")
	replyRelayDenied  = reply(550, 5, 7, 1, "Relaying denied")
	replyBadRecipient = reply(501, 5, 1, 3, "Bad recipient address")
	replyBadSender    = reply(501, 5, 1, 7, "Bad sender address")
	replyNestedMail   = reply(503, 5, 5, 1, "Sender already given")
	replyNoRecipients = reply(503, 5, 5, 1, "No recipients")

	replyTooLarge       = reply(552, 5, 3, 4, "Message too large")
	replyHeaderTooLarge = reply(552, 5, 3, 4, "Message header too large")
	replyLoop           = reply(554, 5, 4, 6, "Too many Received header fields, this is a mail loop")
	replyBareLineEnd    = reply(554, 5, 6, 0, "Lines must end with <CR><LF>; bare <CR> or <LF> is not allowed")

	replyTryLater     = reply(451, 4, 3, 0, "Try again later")
	replyFull         = reply(452, 4, 3, 1, "No space left, try again later")
	replyCutShort     = reply(421, 4, 4, 2, "Message transfer was cut short, closing connection")
	replyTooManyRcpts = reply(421, 4, 7, 0, "Too many refused recipients, closing connection")
	replyPanic        = reply(421, 4, 3, 0, "Internal error, closing connection")
)

// replyTo returns the answer for an error of the receive path, and whether the
// fault is ours, so that the cause belongs in the log.
func replyTo(err error) (answer *gosmtp.SMTPError, ours bool) {
	if errors.As(err, &answer) {
		return answer, false
	}
	switch {
	case errors.Is(err, message.ErrHeaderTooLarge):
		return replyHeaderTooLarge, false
	case errors.Is(err, store.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return replyFull, true
	case errors.Is(err, context.Canceled), errors.Is(err, gosmtp.ErrDataReset):
		return replyTryLater, false // the client or we ourselves went away
	}
	return replyTryLater, true
}
