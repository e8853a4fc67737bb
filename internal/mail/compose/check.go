package compose

import (
	"fmt"
	stdmime "mime"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// FieldError reports which field of an outgoing message is invalid, and why.
type FieldError struct {
	Field  string // as in the API: "subject", "to[1].email", "headers.X-Tag"
	Reason string // "contains a line break or control character"
}

func (e *FieldError) Error() string { return e.Field + " " + e.Reason }

// checker keeps the first error.
type checker struct{ err *FieldError }

func (c *checker) fail(field, reason string) {
	if c.err == nil {
		c.err = &FieldError{Field: field, Reason: reason}
	}
}

// line checks a string for use in a header.
func (c *checker) line(field, s string) {
	if err := mail.CheckLine(s); err != nil {
		c.fail(field, err.Error())
	}
}

// text is line, but allows tabs, which are written as spaces.
func (c *checker) text(field, s string) { c.line(field, strings.ReplaceAll(s, "\t", " ")) }

func (c *checker) address(field string, a mail.Address) {
	c.text(field+".name", a.Name)
	if err := mail.ValidAddress(a.Email); err != nil {
		c.fail(field+".email", err.Error())
	}
}

func (c *checker) addresses(field string, list []mail.Address) {
	for i, a := range list {
		c.address(fmt.Sprintf("%s[%d]", field, i), a)
	}
}

func (c *checker) ids(field string, ids []string) {
	for _, id := range ids {
		if !mime.ValidMessageID(id) {
			c.fail(field, "is not a message identifier in angle brackets")
		}
	}
}

// check returns a *FieldError for the first invalid field, or nil.
func (o *Outgoing) check() error {
	var c checker
	c.address("from", o.From)
	if o.Sender != nil {
		c.address("sender", *o.Sender)
	}
	c.addresses("to", o.To)
	c.addresses("cc", o.Cc)
	c.addresses("reply_to", o.ReplyTo)
	c.text("subject", o.Subject)
	c.body("text", o.Text)
	c.body("html", o.HTML)
	c.ids("message_id", []string{o.HeaderID})
	c.ids("in_reply_to", o.InReplyTo)
	c.ids("references", o.References)
	if o.Date.IsZero() || o.Date.Year() < 1000 || o.Date.Year() > 9999 {
		c.fail("date", "is not a date of four digits")
	}
	for _, f := range o.Headers {
		c.header(f[0], f[1])
	}
	for i := range o.Attachments {
		c.attachment(fmt.Sprintf("attachments[%d]", i), &o.Attachments[i])
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *checker) body(field, s string) {
	switch {
	case !utf8.ValidString(s):
		c.fail(field, "is not valid UTF-8")
	case strings.IndexByte(s, 0) >= 0:
		c.fail(field, "contains a NUL character")
	}
}

// ownFields are set from Outgoing or by mail systems.
var ownFields = map[string]bool{
	"date": true, "from": true, "sender": true, "reply-to": true, "to": true, "cc": true, "bcc": true, "subject": true,
	"message-id": true, "in-reply-to": true, "references": true, "mime-version": true, "return-path": true, "received": true,
	"delivered-to": true, "authentication-results": true,
}

// header checks a field that the caller adds.
func (c *checker) header(name, value string) {
	low := strings.ToLower(name)
	field := "headers." + strings.ToValidUTF8(plaintext.Truncate(name, 80), "?")
	switch {
	case name == "" || len(name) > foldAt-2 || !mime.IsFieldName([]byte(name)):
		c.fail(field, "is not the name of a header field")
	case ownFields[low] || strings.HasPrefix(low, "content-") || strings.HasPrefix(low, "dkim-") ||
		strings.HasPrefix(low, "resent-") || strings.HasPrefix(low, "arc-"):
		c.fail(field, "is a header field that cannot be set")
	}
	c.text(field, value)
}

func (c *checker) attachment(field string, a *Attachment) {
	c.line(field+".filename", a.Filename)
	if len(a.Filename) > mime.MaxFilename {
		c.fail(field+".filename", fmt.Sprintf("is longer than %d bytes", mime.MaxFilename))
	}
	if a.ContentType != "" {
		kind, _, err := stdmime.ParseMediaType(a.ContentType)
		if err != nil || !mime.IsMediaType(kind) || !plaintext.IsASCII(a.ContentType) || len(a.ContentType) > mime.MaxFilename {
			c.fail(field+".content_type", "is not a media type")
		}
		c.line(field+".content_type", a.ContentType)
	}
	if a.ContentID != "" && !mime.ValidMessageID("<"+a.ContentID+">") {
		c.fail(field+".content_id", "is not a content identifier")
	}
}
