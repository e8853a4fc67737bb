package smtp

import (
	"bytes"
	"hash"
)

// relaxedField appends a header field in the form that is signed: the name in
// lower case, the value on one line, every run of white space in it one space,
// and none at its ends (RFC 6376 section 3.4.2). It ends without a line end.
func relaxedField(to, field []byte) []byte {
	name, value, _ := bytes.Cut(field, []byte(":"))
	to = append(to, bytes.ToLower(bytes.TrimRight(name, " \t"))...)
	to = append(to, ':')
	begin, space := len(to), false
	for _, c := range value {
		switch c {
		case ' ', '\t':
			space = true
		case '\r', '\n': // of a fold: the white space comes after it
		default:
			if space && len(to) > begin {
				to = append(to, ' ')
			}
			space = false
			to = append(to, c)
		}
	}
	return to
}

// relaxedBody hashes a body in the form that is signed: every run of white space
// is one space, there is none at the end of a line, and no empty line at the end
// (RFC 6376 section 3.4.4). Lines end where they will on the wire: at CRLF, and
// at a CR or LF that stands alone. Memory does not grow with the body.
type relaxedBody struct {
	hash  hash.Hash
	out   []byte
	ends  int  // line ends that are written when something comes after them
	space bool // white space, the same
	cr    bool // the last byte was a CR
	any   bool // something is written
}

// Write implements io.Writer.
func (b *relaxedBody) Write(p []byte) (int, error) {
	for _, c := range p {
		switch c {
		case ' ', '\t':
			b.space = true
		case '\n':
			if !b.cr {
				b.ends++
			}
			b.space = false
		case '\r':
			b.ends++
			b.space = false
		default:
			if b.ends > 0 || b.space {
				b.catchUp()
			}
			b.out = append(b.out, c)
		}
		b.cr = c == '\r'
	}
	b.flush()
	return len(p), nil
}

// catchUp writes what was held back before a character.
func (b *relaxedBody) catchUp() {
	for ; b.ends > 0; b.ends-- {
		b.out = append(b.out, crlf...)
		if len(b.out) > 4<<10 {
			b.flush()
		}
	}
	if b.space {
		b.out = append(b.out, ' ')
		b.space = false
	}
}

func (b *relaxedBody) flush() {
	if len(b.out) > 0 {
		b.any = true
		_, _ = b.hash.Write(b.out) // a hash never fails
		b.out = b.out[:0]
	}
}

// sum ends the last line and returns the hash.
func (b *relaxedBody) sum() []byte {
	if b.any {
		_, _ = b.hash.Write(crlf) // as above
	}
	return b.hash.Sum(nil)
}
