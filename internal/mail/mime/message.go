// Package mime reads messages in the Internet Message Format (RFC 5322, MIME RFC
// 2045-2049): header fields, parts, charsets, attachments.
//
// Reading never fails because a message is malformed. Real messages have
// missing boundaries, wrong charsets and broken encodings, and a service that
// rejects them loses mail. All functions decode as much as they can.
// [mail.Limits] limits the work. A message that exceeds a limit is still
// returned, with [Message.Truncated] set.
package mime

import (
	"errors"
	"time"

	"github.com/postroom/postroom/internal/mail"
)

// Errors of the readers.
var (
	// ErrHeaderTooLarge means that the message header exceeds
	// Limits.HeaderBytes, so its fields are unreliable.
	ErrHeaderTooLarge = errors.New("message header too large")
	// ErrNoPart means that the message has no leaf part with this number.
	ErrNoPart = errors.New("no such part")
)

// Message is a decoded message.
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

	// Calendar is the text of an invitation, decoded and with its lines unfolded: the first
	// part of type text/calendar, else the first file with the extension ics.
	Calendar string `json:",omitempty"`

	AutoSubmitted string // header values as written, unfolded
	Precedence    string
	HasListField  bool // a List-* field (RFC 2369, RFC 2919)
	AutoReply     bool // another field marks an automatic reply

	Truncated bool // a limit was reached; some content is missing
}
