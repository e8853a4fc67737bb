// Package compose writes messages. It refuses any value that could add a header field
// or a recipient, and names the field. It never repairs such a value.
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

// Outgoing is everything that a message to be sent is made of. The same Outgoing
// always gives the same bytes, so that a message can be composed anew for each
// delivery attempt instead of being stored twice.
type Outgoing struct {
	// Seed makes the boundaries of the parts; it is unique to the message.
	Seed string
	// HeaderID is the Message-ID with its angle brackets.
	HeaderID string
	Date     time.Time

	From    mail.Address
	Sender  *mail.Address // only if it is not From
	To, Cc  []mail.Address
	ReplyTo []mail.Address
	Subject string

	// Text and HTML are the body; either may be empty. Their line ends may be
	// LF or CRLF.
	Text, HTML string

	InReplyTo  []string // with angle brackets
	References []string // with angle brackets

	// Headers are further fields, name and value, in their order. Fields that
	// Outgoing has itself are refused.
	Headers     [][2]string
	Attachments []Attachment
}

// Attachment is a file that goes with a message.
type Attachment struct {
	Filename    string
	ContentType string // application/octet-stream if empty
	ContentID   string // without angle brackets; for "cid:" links in the HTML
	Inline      bool   // shown within the HTML, if there is one, by its ContentID
	Content     []byte
	// Open, if set, gives the content instead of Content. It is called once
	// for each WriteTo.
	Open func() (io.ReadCloser, error)
}

// WriteTo implements io.WriterTo: it writes the message (RFC 5322, RFC 2045) with
// CRLF line ends and lines of at most 998 bytes. It has no Bcc field. All is
// 7-bit except addresses with a non-ASCII local part, which only the headers
// of RFC 6532 can hold. Nothing is written when a field cannot be: the error
// is then a *FieldError.
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

// countingWriter counts what is written to w.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// wireWriter keeps the first error of what it writes to and returns it from
// Flush, so that a write itself cannot fail.
type wireWriter struct{ *bufio.Writer }

// put writes strings one after the other.
func (w wireWriter) put(parts ...string) {
	for _, s := range parts {
		_, _ = w.WriteString(s)
	}
}

// mailWriter writes the parts of a message: the text and its HTML form are
// alternatives, the HTML stands with the files it shows, and all of it with
// the files that are attached.
type mailWriter struct {
	w          wireWriter
	out        *Outgoing
	boundaries int
	err        error // of an attachment
}

func (m *mailWriter) body() {
	var related, attached []int
	for i := range m.out.Attachments {
		if a := &m.out.Attachments[i]; a.Inline && a.ContentID != "" && m.out.HTML != "" {
			related = append(related, i)
		} else {
			attached = append(attached, i)
		}
	}
	if len(attached) == 0 {
		m.content(related, true)
		return
	}
	boundary := m.open("mixed")
	m.next(boundary)
	m.content(related, false)
	m.files(boundary, "attachment", attached)
	m.close(boundary)
}

// content writes the text of the message. last says that nothing follows it.
func (m *mailWriter) content(related []int, last bool) {
	switch {
	case m.out.HTML == "":
		m.text("plain", m.out.Text, last)
	case m.out.Text == "":
		m.html(related, last)
	default:
		boundary := m.open("alternative")
		m.next(boundary)
		m.text("plain", m.out.Text, false)
		m.next(boundary)
		m.html(related, false)
		m.close(boundary)
	}
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

// open begins a multipart and returns its boundary. No boundary can stand in
// the content: "=_" is neither base64 nor quoted-printable, and text that has
// it is not written unchanged.
func (m *mailWriter) open(subtype string) string {
	m.boundaries++
	sum := sha256.Sum256([]byte(m.out.Seed + "\x00" + strconv.Itoa(m.boundaries)))
	boundary := "=_" + hex.EncodeToString(sum[:16])
	m.w.put("Content-Type: multipart/", subtype, ";\r\n boundary=\"", boundary, "\"\r\n\r\n")
	return boundary
}

// next begins a part. The line end before the delimiter is not of the part
// before it.
func (m *mailWriter) next(boundary string) { m.w.put("\r\n--", boundary, "\r\n") }

func (m *mailWriter) close(boundary string) { m.w.put("\r\n--", boundary, "--\r\n") }
