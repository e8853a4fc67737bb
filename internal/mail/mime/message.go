// Package mime reads messages in the Internet Message Format (RFC 5322, MIME RFC
// 2045-2049): header fields, parts, charsets, attachments.
//
// Reading never fails because a message is malformed. Real messages have missing
// boundaries, wrong charsets and broken encodings, and a service that refuses them
// loses mail. Every reader here decodes as much as it can. [mail.Limits] bound the
// work; a message that reaches a limit is returned all the same, marked
// [Message.Truncated].
package mime

import (
	"errors"
	"time"

	"github.com/postroom/postroom/internal/mail"
)

// Errors that the readers return.
var (
	// ErrHeaderTooLarge says that the header of the message is larger than
	// Limits.HeaderBytes, so that nothing about it can be relied on.
	ErrHeaderTooLarge = errors.New("message header too large")
	// ErrNoPart says that the message has no leaf part of that number.
	ErrNoPart = errors.New("no such part")
)

// Message is what a message says, decoded.
type Message struct {
	HeaderID   string   // the header Message-ID with angle brackets, or ""
	InReplyTo  []string // with angle brackets
	References []string // with angle brackets, oldest first

	mail.Addresses
	Subject string
	Date    time.Time // zero when missing or unreadable

	Text string // text/plain, decoded: valid UTF-8, LF line ends, no NUL
	HTML string // text/html, likewise

	Attachments []mail.Attachment

	AutoSubmitted string // header values as written, unfolded
	Precedence    string
	HasListField  bool // a List-* field (RFC 2369, RFC 2919)

	Truncated bool // a limit was reached; some of the message is not shown here
}
