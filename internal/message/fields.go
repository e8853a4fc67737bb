package message

import (
	"bytes"
	"io"
)

// usualFields is how many fields most headers have.
const usualFields = 24

// Field is one field of a mail's header as it stands there.
type Field struct {
	Name []byte // without the colon
	Raw  []byte // the whole field with name, line breaks and line end
}

// ReadHeader reads the header of a mail as Parse does, and returns its fields
// in order. What follows the header is left in body, which reads on from r.
// The error is ErrHeaderTooLarge or that of r.
func ReadHeader(r io.Reader, lim Limits) (fields []Field, body io.Reader, err error) {
	w := newWalker(r, lim)
	if err := w.readHeader(); err != nil {
		return nil, nil, err
	}
	if w.truncated {
		return nil, nil, ErrHeaderTooLarge
	}
	fields = make([]Field, 0, usualFields)
	for block := w.header; len(block) > 0; {
		end := fieldEnd(block)
		raw := block[:end:end]
		block = block[end:]
		colon := max(bytes.IndexByte(raw, ':'), 0)
		if name := bytes.TrimRight(raw[:colon], " \t"); isFieldName(name) {
			fields = append(fields, Field{Name: name, Raw: raw})
		}
	}
	return fields, w.lines.rest(), nil
}

// Is reports whether the field has a name, which is given in lower case.
func (f Field) Is(name string) bool { return f.parsed().is(name) }

// Value returns what follows the colon, as written, without the spaces around
// it.
func (f Field) Value() []byte {
	return bytes.TrimSpace(f.Raw[bytes.IndexByte(f.Raw, ':')+1:])
}

// Text returns the value as text to read: unfolded, encoded words decoded, on
// one line.
func (f Field) Text() string { return f.parsed().text() }

// Addresses returns the addresses in the field, at most limit of them, as Parse
// reads them. more says that there are others.
func (f Field) Addresses(limit int) (list []Address, more bool) {
	return parseAddressList(f.parsed().unfolded(), limit)
}

func (f Field) parsed() field { return field{name: f.Name, value: f.Value()} }
