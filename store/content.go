package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"
)

const (
	// RawInRow is the largest raw message, in bytes, that lies in its row; a
	// larger one is a blob.
	RawInRow = 256 << 10
)

// Body is the decoded text and HTML of a message. All of it is made once, when
// the message is stored.
type Body struct {
	Text string `json:"text,omitempty"`
	HTML string `json:"html,omitempty"`
	// Reply is the new part of the text of a received message; nil when that is
	// all of Text.
	Reply *string `json:"reply,omitempty"`
	// FromHTML says that the message has no text of its own, and that Text was
	// made from HTML.
	FromHTML bool `json:"from_html,omitempty"`
	// Derived is false for messages that were stored by versions without Reply
	// and FromHTML. What those show is made each time that they are read.
	Derived bool `json:"derived,omitempty"`
}

// Extracted are the codes and links found in a received message, best first.
type Extracted struct {
	OTP        *string  `json:"otp"`
	Codes      []string `json:"codes"`
	Links      []string `json:"links"`
	ActionLink *string  `json:"action_link"`
}

// AuthResults are the verdicts on a received message, as in RFC 8601.
type AuthResults struct {
	SPF   string `json:"spf"`
	DKIM  string `json:"dkim"`
	DMARC string `json:"dmarc"`
	// Internal is "pass" for a message that an account of this installation sent to
	// another inbox of it, and Account is that account's id.
	Internal string `json:"internal,omitempty"`
	Account  string `json:"account,omitempty"`
	// Field is the value of the Authentication-Results field that says all of it.
	Field string `json:"field,omitempty"`
}

// Attachment is one part of the raw message, found there by its number.
type Attachment struct {
	ID          string `json:"id"`
	Part        int    `json:"part"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	ContentID   string `json:"content_id,omitempty"`
	Inline      bool   `json:"inline,omitempty"`
	Size        int64  `json:"size"`
}

// Content is what retention deletes.
type Content struct {
	MessageSeq  int64              `db:"message_seq"`
	Raw         []byte             `db:"raw"`       // nil when BlobKey is set
	BlobKey     *string            `db:"blob_key"`  // the blob that is the raw
	Signature   *string            `db:"signature"` // header lines put before Raw when it was first sent
	Body        *JSON[Body]        `db:"body"`      // nil for old messages: read it out of Raw
	Snippet     string             `db:"snippet"`
	Extracted   *JSON[Extracted]   `db:"extracted"` // nil for outbound ones
	Auth        *JSON[AuthResults] `db:"auth"`      // nil when not checked
	Attachments JSON[[]Attachment] `db:"attachments"`
}

// The raw bytes of a message whose body is kept beside them are left out: who
// lists messages does not need them.
const contentColumns = `message_seq, CASE WHEN body IS NULL THEN raw END AS raw, blob_key, signature, body, snippet, extracted, auth, attachments`

// Raw is an open raw message.
type Raw struct {
	// ReadSeekCloser gives the bytes as received, or as composed.
	io.ReadSeekCloser
	// Signature stands before them on the wire: the header lines that signing
	// added, or empty.
	Signature string
	// Size is the number of bytes without the signature.
	Size int64
}

// Raw opens the raw message, for as long as ctx lasts. ErrNotFound when the
// content is deleted. The caller closes it.
func (s *Store) Raw(ctx context.Context, messageSeq int64) (*Raw, error) {
	const q = `SELECT c.raw, c.blob_key, coalesce(c.signature, '') AS signature, m.size
		FROM contents c JOIN messages m ON m.seq = c.message_seq WHERE c.message_seq = $1`
	var row struct {
		raw       []byte
		blobKey   *string
		signature string
		size      int64
	}
	if err := s.reads.Scan(ctx, q, []any{messageSeq}, &row.raw, &row.blobKey, &row.signature, &row.size); err != nil {
		return nil, s.wrap(err, "raw message")
	}
	raw := &Raw{Signature: row.signature, Size: row.size}
	if row.blobKey == nil {
		raw.ReadSeekCloser = nopCloser{bytes.NewReader(row.raw)}
		return raw, nil
	}
	f, err := s.blobs.Open(ctx, *row.blobKey)
	if err != nil {
		return nil, fmt.Errorf("raw message: %w", err)
	}
	raw.ReadSeekCloser = f
	return raw, nil
}

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// PutBlob writes a raw message of size bytes that is too large for its row and
// returns its key. It is durable when PutBlob returns, before any row names it;
// one that no row comes to name is swept away later.
func (s *Store) PutBlob(ctx context.Context, r io.Reader, size int64) (key string, err error) {
	return s.blobs.Put(ctx, r, size)
}

// BlobLink returns an address of the blob storage's own that gives the raw
// message, without signature, to whoever has it, for as long as life; empty
// when there is none, because the message lies elsewhere or the storage is not
// meant to be reached by others.
func (s *Store) BlobLink(ctx context.Context, c Content, name string, life time.Duration) (string, error) {
	linker, ok := s.blobs.(BlobLinker)
	if !ok || c.BlobKey == nil || c.Signature != nil {
		return "", nil
	}
	return linker.Link(ctx, *c.BlobKey, name, life)
}
