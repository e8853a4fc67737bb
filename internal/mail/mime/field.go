package mime

import (
	"bytes"
	"io"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// usualFields is the typical number of fields in a header.
const usualFields = 24

// Field is one header field as written.
type Field struct {
	Name  []byte // without the colon
	Raw   []byte // the whole field: name, folds and line ending
	value []byte // without surrounding white space
}

// ReadHeader reads the header of a message as Parse does, and returns its
// fields in order. body reads the rest of r. The error is ErrHeaderTooLarge or
// that of r.
func ReadHeader(r io.Reader, lim mail.Limits) (fields []Field, body io.Reader, err error) {
	w := newWalker(r, lim)
	if err := w.readHeader(); err != nil {
		return nil, nil, err
	}
	if w.truncated {
		return nil, nil, ErrHeaderTooLarge
	}
	fields = make([]Field, 0, usualFields)
	Fields(w.header, func(f Field) { fields = append(fields, f) })
	return fields, w.lines.rest(), nil
}

// Is reports whether the field has the given name, which must be in lower case.
func (f Field) Is(name string) bool {
	if len(f.Name) != len(name) {
		return false
	}
	for i, c := range f.Name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// Value returns the text after the colon as written, without surrounding white
// space.
func (f Field) Value() []byte { return f.value }

// Unfolded returns the value on one line (RFC 5322 section 2.2.3).
func (f Field) Unfolded() string {
	if bytes.IndexByte(f.value, '\n') < 0 && bytes.IndexByte(f.value, '\r') < 0 {
		return string(f.value)
	}
	out := make([]byte, 0, len(f.value))
	for i, c := range f.value {
		switch {
		case c == '\r' || c == '\n':
		case c == '\t' && i > 0 && f.value[i-1] == '\n':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// Text returns the value for display: unfolded, on one line, with encoded words
// decoded.
func (f Field) Text() string { return plaintext.OneLine(decodeWords(f.Unfolded())) }

// Addresses returns at most limit addresses in the field, as Parse reads them.
// more reports that the field has others.
func (f Field) Addresses(limit int) (list []mail.Address, more bool) {
	return ParseAddressList(f.Unfolded(), limit)
}
