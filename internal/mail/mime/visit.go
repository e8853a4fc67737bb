package mime

import (
	"errors"
	"io"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Visitor selects what Visit reads.
type Visitor struct {
	// Field is called with each header field of the message.
	Field func(Field)
	// Wants reports whether to read the text of a leaf part with this media
	// type.
	Wants func(contentType string) bool
	// Text is called with the text of each wanted part, as valid UTF-8 with LF
	// line endings. A message without parts has one part of type "text/plain".
	Text func(contentType, text string)
	// MaxText is the maximum number of bytes to read per part.
	MaxText int
}

// Visit reads the header of a message and the beginning of the leaf parts that
// v wants. Unlike Parse, it does not distinguish text and attachments. It
// returns the same errors as Parse.
func Visit(r io.Reader, lim mail.Limits, v Visitor) error {
	w := newWalker(r, lim)
	if err := w.readHeader(); err != nil {
		return err
	}
	if w.truncated {
		return ErrHeaderTooLarge
	}
	Fields(w.header, v.Field)
	var preamble []byte
	w.preamble = func(b []byte) {
		if len(preamble) < v.MaxText {
			preamble = append(preamble, b...)
		}
	}
	for {
		leaf, err := w.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := v.readPart(w, &leaf); err != nil {
			return err
		}
	}
	if w.parts == 0 {
		v.Text("text/plain", plaintext.UnixLines(ToUTF8(preamble, "")))
	}
	return nil
}

func (v *Visitor) readPart(w *walker, leaf *leafPart) error {
	kind := leaf.kind()
	if !v.Wants(kind) {
		return w.body(discard)
	}
	var content []byte
	decoder := newTransferDecoder(leaf.encoding)
	err := w.body(func(piece []byte) {
		if len(content) < v.MaxText {
			content = decoder.decode(content, piece)
		}
	})
	content = decoder.finish(content)
	v.Text(kind, plaintext.UnixLines(ToUTF8(content[:min(len(content), v.MaxText)], leaf.media.Raw("charset"))))
	return err
}
