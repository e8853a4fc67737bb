package inbound

import (
	"context"
	"errors"
	"syscall"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// smtpError converts a reply to the error that the SMTP library sends.
func smtpError(r *smtp.Reply) *gosmtp.SMTPError {
	return &gosmtp.SMTPError{Code: r.Code, EnhancedCode: gosmtp.NoEnhancedCode, Message: r.Enhanced + " " + r.Text}
}

func reply(code int, enhanced, text string) *smtp.Reply {
	return &smtp.Reply{Code: code, Enhanced: enhanced, Text: text}
}

var replyStartTLS = reply(220, "2.0.0", "Ready to start TLS")

// Refusals of content and recipients.
var (
	replyNoInbox      = reply(550, "5.1.1", "No such inbox here")
	replyInboxClosed  = reply(550, "5.2.1", "Inbox does not accept mail")
	replyRelayDenied  = reply(550, "5.7.1", "Relaying denied")
	replyBadRecipient = reply(501, "5.1.3", "Bad recipient address")
	replyBadSender    = reply(501, "5.1.7", "Bad sender address")
	replyListed       = reply(550, "5.7.1", "Sender not accepted by this inbox")
	replyListedLater  = reply(451, "4.7.0", "Sender cannot be authenticated now, try again later")
	replyInboxFull    = reply(452, "4.2.2", "Inbox full, try again later")
	replyNoReport     = reply(550, "5.7.1", "This address accepts only delivery reports")
	replyNeedsUTF8    = reply(553, "5.6.7", "An address outside ASCII needs SMTPUTF8")

	replyTooLarge       = reply(552, "5.3.4", "Message too large")
	replyHeaderTooLarge = reply(552, "5.3.4", "Message header too large")
	replyTextLine       = reply(552, "5.6.0", "Line of the message too long")
	replyLoop           = reply(554, "5.4.6", "Too many Received header fields, mail loop detected")
	replyBareLineEnd    = reply(554, "5.6.0", "Lines must end with <CR><LF>; bare <CR> or <LF> is not allowed")
	replyNUL            = reply(554, "5.6.0", "NUL is not allowed in a message")
)

// Refusals of syntax and order.
var (
	replyNotOffered   = reply(502, "5.5.1", "Command not offered")
	replyHelloFirst   = reply(503, "5.5.1", "EHLO first")
	replyLongName     = reply(501, "5.5.4", "Name too long")
	replyMailFirst    = reply(503, "5.5.1", "MAIL first")
	replyNestedMail   = reply(503, "5.5.1", "Sender already given")
	replyNoRecipients = reply(503, "5.5.1", "No recipients")
	replyControl      = reply(501, "5.5.2", "Control characters are not allowed")
)

// Refusals of AUTH, and of clients that should use it.
var (
	replyNeedsTLS   = reply(530, "5.7.0", "STARTTLS first")
	replyNeedsLogin = reply(530, "5.7.0", "Authentication required: use AUTH with an API key as the password")
	replyAuthTLS    = reply(538, "5.7.11", "STARTTLS first, AUTH needs an encrypted connection")
	replyAfterAuth  = reply(503, "5.5.1", "STARTTLS must come before AUTH")
)

// Replies that close the connection.
var (
	replyCommandLine  = reply(500, "5.5.2", "Line too long, closing connection")
	replyCommandEnd   = reply(500, "5.5.2", "Lines must end with <CR><LF>, closing connection")
	replyUnfinished   = reply(421, "4.4.2", "Message not received whole or in time, closing connection")
	replyCommands     = reply(421, "4.7.0", "Too many commands, closing connection")
	replyErrors       = reply(421, "4.7.0", "Too many errors, closing connection")
	replyGuessing     = reply(421, "4.7.0", "Too many unknown recipients from your address, try again later")
	replyCrowded      = reply(421, "4.7.0", "Too many connections, try again later")
	replyCrowdedIP    = reply(421, "4.7.0", "Too many connections from your address, try again later")
	replyShuttingDown = reply(421, "4.3.2", "Shutting down, try again later")
)

// Internal faults.
var (
	replyTryLater = reply(451, "4.3.0", "Try again later")
	replyFull     = reply(452, "4.3.1", "No space left, try again later")
)

// replyTo returns the reply to an error of the receive path. ours reports that
// the fault is ours, so that the cause is logged.
func replyTo(err error) (out *smtp.Reply, ours bool) {
	if errors.As(err, &out) {
		return out, false
	}
	switch {
	case errors.Is(err, mime.ErrHeaderTooLarge):
		return replyHeaderTooLarge, false
	case errors.Is(err, store.ErrFull), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return replyFull, true
	case errors.Is(err, store.ErrNotFound): // an inbox was deleted since RCPT
		return replyTryLater, false
	case errors.Is(err, context.Canceled): // the server is shutting down
		return replyTryLater, false
	}
	return replyTryLater, true
}
