// Package message reads and writes mail in the Internet Message Format
// (RFC 5322, MIME RFC 2045-2049). It is pure: bytes in, values out, with no
// network, no database and no clock.
//
// Reading never fails because a mail is odd. Mail in the wild has missing
// boundaries, wrong charsets and broken encodings, and a service that refuses
// it loses it; so every reader here does what it can and goes on. What bounds
// the work are the [Limits], and a mail that reaches one is still returned,
// marked [Message.Truncated]. All work is linear in the size of the mail.
//
// Writing is the opposite: whatever could put a foreign header or recipient
// into a mail is refused with the name of the field, never repaired.
package message

import (
	"errors"
	"time"

	"github.com/postroom/postroom/internal/cpubudget"
)

// Errors that the readers return.
var (
	// ErrHeaderTooLarge says that the header of the mail is larger than
	// Limits.HeaderBytes, so that nothing about it can be relied on.
	ErrHeaderTooLarge = errors.New("message header too large")
	// ErrNoPart says that the mail has no leaf part of that number.
	ErrNoPart = errors.New("no such part")
)

// Limits bound the work that one mail can cause.
type Limits struct {
	Depth       int // nested multiparts; what lies deeper is one opaque part
	Parts       int // leaf parts that are looked at
	HeaderBytes int // the header of the mail, and all part headers together
	TextBytes   int // decoded bytes of Text, and as many of HTML
	Links       int // links that Extract keeps
	Addresses   int // addresses kept of one header field

	// Budget is the processor time that is left for reading the message, in
	// [cpubudget.Budget.Run]. When it runs out, reading stops. nil is no bound.
	Budget *cpubudget.Budget
}

// DefaultLimits returns the limits that every mail met in practice stays
// within.
func DefaultLimits() Limits {
	return Limits{
		Depth:       100,
		Parts:       1000,
		HeaderBytes: 1 << 20,
		TextBytes:   2 << 20,
		Links:       maxLinks,
		Addresses:   1000,
	}
}

// Address is a mailbox: a display name, possibly empty, and an address.
type Address struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Attachment describes a leaf part that is not the text of the mail. Its
// content is read with [OpenPart].
type Attachment struct {
	Part        int    // number of the leaf part in the order of the mail
	Filename    string // base name, free of control characters, may be empty
	ContentType string // media type in lower case, without parameters
	ContentID   string // without angle brackets
	Inline      bool   // shown within the HTML rather than listed
	Size        int64  // decoded bytes
}

// Message is what a mail says, decoded.
type Message struct {
	HeaderID   string   // the header Message-ID with angle brackets, or ""
	InReplyTo  []string // with angle brackets
	References []string // with angle brackets, oldest first

	From                 *Address // of the first From field; nil without one; may have a name alone
	ReplyTo, To, Cc, Bcc []Address
	Subject              string
	Date                 time.Time // zero when missing or unreadable

	Text string // text/plain, decoded: valid UTF-8, LF line ends, no NUL
	HTML string // text/html, likewise

	Attachments []Attachment

	AutoSubmitted string // header values as written, unfolded
	Precedence    string
	HasListField  bool // a List-* field (RFC 2369, RFC 2919)

	Truncated bool // a limit was reached; some of the mail is not shown here
}
