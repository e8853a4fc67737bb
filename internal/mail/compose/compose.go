// Package compose writes messages. It rejects any value that could add a header
// field or a recipient, and reports the field. It never repairs a value.
package compose

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"time"

	"github.com/postroom/postroom/internal/mail"
)

// Outgoing is an outgoing message. WriteTo always writes the same bytes for the
// same Outgoing, so the message can be composed again for each delivery attempt
// instead of being stored.
type Outgoing struct {
	// Seed determines the MIME boundaries. It is unique to the message.
	Seed string
	// HeaderID is the Message-ID with angle brackets.
	HeaderID string
	Date     time.Time

	From    mail.Address
	Sender  *mail.Address // only if it is not From
	To, Cc  []mail.Address
	ReplyTo []mail.Address
	Subject string

	// Text and HTML are the body; either may be empty. Line endings may be LF
	// or CRLF.
	Text, HTML string

	InReplyTo  []string // with angle brackets
	References []string // with angle brackets

	// Headers are additional fields, name and value, in order. Fields that
	// Outgoing sets itself are rejected.
	Headers     [][2]string
	Attachments []Attachment
}

// Attachment is an attached file.
type Attachment struct {
	Filename    string
	ContentType string // application/octet-stream if empty
	ContentID   string // without angle brackets; for "cid:" links in the HTML
	Inline      bool   // shown within the HTML, if any, by its ContentID
	Content     []byte
	// Open, if set, returns the content instead of Content. Each WriteTo calls
	// it once.
	Open func() (io.ReadCloser, error)
}

// WriteTo implements io.WriterTo. It writes the message (RFC 5322, RFC 2045)
// with CRLF line endings, in lines of at most 998 bytes and without a Bcc
// field. The output is 7-bit, except for addresses with a non-ASCII local part
// (RFC 6532). If a field is invalid, it writes nothing and returns a
// *FieldError.
func (o *Outgoing) WriteTo(w io.Writer) (int64, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	count := &countingWriter{w: w}
	m := mailWriter{w: wireWriter{bufio.NewWriter(count)}, out: o}
	o.writeHeader(&headerWriter{w: m.w})
	m.body()
	if err := m.w.Flush(); m.err == nil {
		m.err = err
	}
	return count.n, m.err
}

// countingWriter counts the bytes written to w.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// wireWriter keeps the first write error and returns it from Flush, so that
// writes themselves do not fail.
type wireWriter struct{ *bufio.Writer }

// put writes the strings in order.
func (w wireWriter) put(parts ...string) {
	for _, s := range parts {
		_, _ = w.WriteString(s)
	}
}

// mailWriter writes the parts of a message. Text, HTML and calendars are alternatives,
// inline files are related to the HTML, and the other files are attached to all
// of it.
type mailWriter struct {
	w          wireWriter
	out        *Outgoing
	boundaries int
	err        error // of an attachment
}

func (m *mailWriter) body() {
	var related, calendars, attached []int
	for i := range m.out.Attachments {
		switch a := &m.out.Attachments[i]; {
		case a.Inline && a.ContentID != "" && m.out.HTML != "":
			related = append(related, i)
		case a.isCalendar() && m.out.Text+m.out.HTML != "":
			calendars = append(calendars, i)
		default:
			attached = append(attached, i)
		}
	}
	if len(attached) == 0 {
		m.content(related, calendars, true)
		return
	}
	boundary := m.open("mixed")
	m.next(boundary)
	m.content(related, calendars, false)
	m.files(boundary, "attachment", attached)
	m.close(boundary)
}

// content writes the text of the message. last reports that nothing follows.
func (m *mailWriter) content(related, calendars []int, last bool) {
	switch {
	case len(calendars) > 0:
	case m.out.HTML == "":
		m.text("plain", m.out.Text, last)
		return
	case m.out.Text == "":
		m.html(related, last)
		return
	}
	boundary := m.open("alternative")
	if m.out.Text != "" {
		m.next(boundary)
		m.text("plain", m.out.Text, false)
	}
	if m.out.HTML != "" {
		m.next(boundary)
		m.html(related, false)
	}
	m.files(boundary, "", calendars)
	m.close(boundary)
}

func (m *mailWriter) html(related []int, last bool) {
	if len(related) == 0 {
		m.text("html", m.out.HTML, last)
		return
	}
	boundary := m.open("related")
	m.next(boundary)
	m.text("html", m.out.HTML, false)
	m.files(boundary, "inline", related)
	m.close(boundary)
}

func (m *mailWriter) files(boundary, disposition string, files []int) {
	for _, i := range files {
		m.next(boundary)
		m.file(i, disposition)
	}
}

// open begins a multipart and returns its boundary. The boundary cannot occur
// in the content: "=_" is neither base64 nor quoted-printable, and text that
// contains it is always encoded.
func (m *mailWriter) open(subtype string) string {
	m.boundaries++
	sum := sha256.Sum256([]byte(m.out.Seed + "\x00" + strconv.Itoa(m.boundaries)))
	boundary := "=_" + hex.EncodeToString(sum[:16])
	m.w.put("Content-Type: multipart/", subtype, ";\r\n boundary=\"", boundary, "\"\r\n\r\n")
	return boundary
}

// next begins a part. The line ending before the delimiter belongs to the
// delimiter.
func (m *mailWriter) next(boundary string) { m.w.put("\r\n--", boundary, "\r\n") }

func (m *mailWriter) close(boundary string) { m.w.put("\r\n--", boundary, "--\r\n") }
