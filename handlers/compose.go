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
// for the positions of its attachments.
func (a *API) compose(s submission) (*composed, error) {
	now := a.now()
	id, seed := store.NewID("em_", now), store.NewLongID("", now)
	_, domain := cutAddress(s.from.Email)
	if s.raw != nil {
		return s.raw.compose(id, "<"+seed+"@"+domain+">", now)
	}
	c := &composed{id: id, out: compose.Outgoing{
		Seed: seed, HeaderID: "<" + seed + "@" + domain + ">", Date: now.UTC().Truncate(time.Second),
		From: s.from, To: s.to, Cc: s.cc, ReplyTo: s.replyTo,
		Subject: s.subject, Text: s.text, HTML: s.html, InReplyTo: s.refs.InReplyTo, References: s.refs.References,
		Headers: s.headers, Attachments: outAttachments(s.attachments),
	}}
	c.bytes = &c.out
	if c.out.Text == "" {
		c.out.Text = htmltext.Text(c.out.HTML)
	}
	c.out.HTML = a.track(s, id, c.out.HTML)
	if s.isEmail && len(s.attachments) == 0 {
		c.parsed = &mime.Message{Text: c.out.Text, HTML: c.out.HTML}
		return c, c.keep()
	}
	if err := c.write(); err != nil {
		return nil, err
	}
	if isText(c.parsed) && !strings.HasSuffix(c.out.Text, "\n") {
		c.parsed.Text = strings.TrimSuffix(c.parsed.Text, "\n")
	}
	return c, nil
}

// keep writes the message and stores the bytes if they are few.
func (c *composed) keep() error {
	var raw rowBuffer
	var err error
	if c.size, err = c.bytes.WriteTo(&raw); err != nil {
		return composeError(err)
	}
	if c.size <= store.RawInRow {
		c.raw = raw.Bytes()
	}
	return nil
}

// write writes the message once. The same pass parses it and stores the bytes
// if they are few.
func (c *composed) write() error {
	var raw rowBuffer
	written := make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		var err error
		c.size, err = c.bytes.WriteTo(io.MultiWriter(&raw, w))
		_ = w.CloseWithError(err) // never fails
		written <- err
	}()
	var err error
	c.parsed, err = mime.Parse(r, mail.DefaultLimits())
	_, _ = io.Copy(io.Discard, r) // the parser may stop early; only the writer's error counts
	switch failed := <-written; {
	case failed != nil:
		return composeError(failed)
	case errors.Is(err, mime.ErrHeaderTooLarge):
		return httpapi.Invalid("headers", "result in a message that cannot be read")
	case err != nil:
		return err
	}
	if c.size <= store.RawInRow {
		c.raw = raw.Bytes()
	}
	return nil
}

// isText reports whether a message is plain text only. The writer ends plain
// text with a line break, even if the input has none.
func isText(m *mime.Message) bool { return m.HTML == "" && len(m.Attachments) == 0 }

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
