package message

import (
	"io"
	"time"
)


// FieldError says which field of an outgoing mail cannot be written.
type FieldError struct {
	Field  string // as in Outgoing: "subject", "to[1].email", ...
	Reason string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Reason }

type OutAttachment struct {
	Filename, ContentType, ContentID string
	Inline                           bool
	Content                          []byte
	Open                             func() (io.ReadCloser, error) // used instead of Content when set
}

type Outgoing struct {
	Seed        string
	HeaderID    string
	Date        time.Time
	From        Address
	Sender      *Address
	To, Cc      []Address
	ReplyTo     []Address
	Subject     string
	Text, HTML  string
	InReplyTo   []string
	References  []string
	Headers     [][2]string
	Attachments []OutAttachment
}

func (o *Outgoing) WriteTo(w io.Writer) (int64, error) { return 0, nil }

// ForwardedHeader is what a forward shows of the original's header.
type ForwardedHeader struct {
	From    Address
	To, Cc  []Address
	Date    time.Time
	Subject string
}

func ForwardText(note string, h ForwardedHeader, text string) string { return note }
func ForwardHTML(note string, h ForwardedHeader, html string) string { return note }
