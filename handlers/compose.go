package handlers

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

// composed is a message ready to send. A large one is not kept in memory: each
// read writes it again, with the same bytes.
type composed struct {
	id     string // of the email, if it is one
	out    compose.Outgoing
	bytes  io.WriterTo // writes the message: out, or a message that the client composed
	size   int64       // in bytes
	raw    []byte      // nil if it does not fit into a row
	parsed *mime.Message
}

// compose writes the message and parses it back, so that the stored data
// matches the message itself. An email is stored as submitted and parsed only
// for the positions of its attachments. Raw mail has been parsed already.
func (a *API) compose(s *submission) (*composed, error) {
	now := a.now()
	seed, date := store.NewLongID("", now), now.UTC().Truncate(time.Second)
	c := &composed{id: store.NewID("em_", now)}
	headerID := "<" + seed + "@" + domainOf(s.from.Email) + ">"
	if s.raw != nil {
		s.raw.Add(compose.Trace{Host: s.raw.host, With: s.raw.with, ID: c.id, HeaderID: headerID, Date: date})
		c.bytes, c.parsed = s.raw, s.raw.parsed
		c.out.From, c.out.HeaderID = s.raw.From, s.raw.HeaderID
		return c, c.write()
	}
	c.out = compose.Outgoing{
		Seed: seed, HeaderID: headerID, Date: date, From: s.from, To: s.to, Cc: s.cc, ReplyTo: s.replyTo,
		Subject: s.subject, Text: s.text, HTML: s.html, InReplyTo: s.refs.InReplyTo, References: s.refs.References,
		Headers: s.headers, Attachments: outAttachments(s.attachments),
	}
	c.bytes = &c.out
	if c.out.Text == "" {
		c.out.Text = htmltext.Text(c.out.HTML)
	}
	c.out.HTML = a.track(s, c.id, c.out.HTML)
	if err := c.write(); err != nil {
		return nil, err
	}
	if s.isEmail && len(s.attachments) == 0 {
		c.parsed = &mime.Message{Text: c.out.Text, HTML: c.out.HTML}
		return c, nil
	}
	if err := c.parse(); err != nil {
		return nil, err
	}
	// The writer ends plain text with a line break, even if the input has none.
	if c.parsed.HTML == "" && len(c.parsed.Attachments) == 0 && !strings.HasSuffix(c.out.Text, "\n") {
		c.parsed.Text = strings.TrimSuffix(c.parsed.Text, "\n")
	}
	return c, nil
}

// write writes the message once, to check it, and stores the bytes if they are few.
func (c *composed) write() (err error) {
	var raw rowBuffer
	if c.size, err = c.bytes.WriteTo(&raw); err != nil {
		return composeError(err)
	}
	if c.size <= store.RawInRow {
		c.raw = raw.Bytes()
	}
	return nil
}

// parse reads the written message.
func (c *composed) parse() (err error) {
	raw := c.open()
	defer func() { _ = raw.Close() }() // the parser may stop early
	c.parsed, err = mime.Parse(raw, mail.DefaultLimits())
	if errors.Is(err, mime.ErrHeaderTooLarge) {
		return httpapi.Invalid("headers", "result in a message that cannot be read")
	}
	return composeError(err)
}

// open returns a reader of the whole message. Close stops the writer.
func (c *composed) open() io.ReadCloser {
	if c.raw != nil {
		return io.NopCloser(bytes.NewReader(c.raw))
	}
	r, w := io.Pipe()
	go func() {
		_, err := c.bytes.WriteTo(w)
		_ = w.CloseWithError(err) // never fails
	}()
	return r
}

// rowBuffer keeps what fits into a row and discards the rest.
type rowBuffer struct{ bytes.Buffer }

func (b *rowBuffer) Write(p []byte) (int, error) {
	if room := store.RawInRow - b.Len(); room > 0 {
		_, _ = b.Buffer.Write(p[:min(room, len(p))]) // never fails
	}
	return len(p), nil
}

// composeError turns an error about one field into an error for the caller.
func composeError(err error) error {
	if field, ok := errors.AsType[*compose.FieldError](err); ok {
		return httpapi.Invalid(field.Field, "%s", field.Reason)
	}
	return err
}
