package mime

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A transferDecoder decodes a Content-Transfer-Encoding (RFC 2045 section 6) in
// pieces. It tolerates malformed input: it skips characters outside the base64
// alphabet and keeps an "=" that does not start an escape.
type transferDecoder interface {
	// decode appends the decoded form of p to dst.
	decode(dst, p []byte) []byte
	// finish appends the buffered rest.
	finish(dst []byte) []byte
}

// newTransferDecoder returns the decoder for a Content-Transfer-Encoding. An
// unknown encoding counts as none.
func newTransferDecoder(cte string) transferDecoder {
	switch strings.ToLower(strings.TrimSpace(cte)) {
	case "base64":
		return &base64Decoder{}
	case "quoted-printable", "quotedprintable", "quoted_printable", "quoted printable":
		return &qpDecoder{}
	case "x-uuencode", "uuencode", "x-uue", "uue":
		return &uuDecoder{}
	}
	return identityDecoder{}
}

type identityDecoder struct{}

func (identityDecoder) decode(dst, p []byte) []byte { return append(dst, p...) }
func (identityDecoder) finish(dst []byte) []byte    { return dst }

// base64Decoder buffers an incomplete group of four characters. Text that begins
// with words and other characters than those of base64 is not encoded.
type base64Decoder struct {
	quad         [4]byte
	n            int
	begun, plain bool
}

func (d *base64Decoder) decode(dst, p []byte) []byte {
	for line := range bytes.Lines(p) {
		if words := bytes.TrimSpace(line); !d.begun && len(words) > 0 {
			d.begun, d.plain = true, bytes.IndexByte(words, ' ') > 0 && bytes.IndexAny(words, ".,:;!?<>'\"") >= 0
		}
		if d.plain {
			dst = append(dst, line...)
			continue
		}
		dst = d.line(dst, line)
	}
	return dst
}

// line decodes a line or a piece of one.
func (d *base64Decoder) line(dst, p []byte) []byte {
	if d.n == 0 {
		// The common case: a complete, valid line.
		line := bytes.TrimRight(p, "\r\n")
		if len(line)%4 == 0 {
			out, err := base64.StdEncoding.AppendDecode(dst, line)
			if err == nil {
				return out
			}
		}
	}
	for _, c := range p {
		switch {
		case isBase64(c):
			d.quad[d.n] = c
			if d.n++; d.n == 4 {
				dst = d.flush(dst)
			}
		case c == '=':
			dst = d.flush(dst) // padding ends a group; another may follow
		}
	}
	return dst
}

func (d *base64Decoder) finish(dst []byte) []byte { return d.flush(dst) }

// flush decodes the buffered characters. A single character is dropped.
func (d *base64Decoder) flush(dst []byte) []byte {
	if d.n >= 2 {
		var out [3]byte
		n, _ := base64.RawStdEncoding.Decode(out[:], d.quad[:d.n])
		dst = append(dst, out[:n]...)
	}
	d.n = 0
	return dst
}

// qpDecoder decodes quoted-printable. It buffers white space, which is dropped
// at the end of a line, and incomplete escapes.
type qpDecoder struct {
	space  []byte
	escape []byte
}

// maxQPSpace is the maximum white space to buffer, in bytes.
const maxQPSpace = 1 << 10

func (d *qpDecoder) decode(dst, p []byte) []byte {
	for len(p) > 0 {
		if len(d.escape) > 0 {
			dst, p = d.unescape(dst, p)
			continue
		}
		n := 0
		for n < len(p) && p[n] != '=' && p[n] != '\r' && p[n] != '\n' {
			n++
		}
		dst = d.text(dst, p[:n], n < len(p) && p[n] == '=')
		if p = p[n:]; len(p) == 0 {
			break
		}
		switch {
		case p[0] != '=':
			d.space = d.space[:0]
			dst = append(dst, p[0])
			p = p[1:]
		case len(p) > 2 && plaintext.IsHex(p[1]) && plaintext.IsHex(p[2]): // the common escape
			dst = append(dst, plaintext.Unhex(p[1])<<4|plaintext.Unhex(p[2]))
			p = p[3:]
		default:
			d.escape = append(d.escape, '=')
			p = p[1:]
		}
	}
	return dst
}

// text appends p. It buffers white space at the end of p, unless spaceCounts.
func (d *qpDecoder) text(dst, p []byte, spaceCounts bool) []byte {
	if spaceCounts {
		return append(d.flushSpace(dst), p...)
	}
	word := bytes.TrimRight(p, " \t")
	if len(word) > 0 {
		dst = append(d.flushSpace(dst), word...)
	}
	d.space = append(d.space, p[len(word):]...)
	if len(d.space) > maxQPSpace {
		dst = d.flushSpace(dst)
	}
	return dst
}

func (d *qpDecoder) finish(dst []byte) []byte {
	if d.isHalf() {
		dst = append(dst, d.escape...)
	}
	d.escape = d.escape[:0]
	return d.flushSpace(dst)
}

// isHalf reports whether the buffer holds an incomplete hex escape, as "=4",
// rather than a soft line break.
func (d *qpDecoder) isHalf() bool { return len(d.escape) > 1 && plaintext.IsHex(d.escape[1]) }

func (d *qpDecoder) flushSpace(dst []byte) []byte {
	dst = append(dst, d.space...)
	d.space = d.space[:0]
	return dst
}

// unescape continues an escape: two hex digits, or a soft line break, which may
// have white space before its end. Anything else is text.
func (d *qpDecoder) unescape(dst, p []byte) (out, rest []byte) {
	c := p[0]
	switch {
	case d.isHalf():
		if plaintext.IsHex(c) {
			dst = append(dst, plaintext.Unhex(d.escape[1])<<4|plaintext.Unhex(c))
			d.escape = d.escape[:0]
			return dst, p[1:]
		}
	case c == '\n':
		d.escape = d.escape[:0]
		return dst, p[1:]
	case len(d.escape) == 1 && plaintext.IsHex(c),
		(c == '\r' || c == ' ' || c == '\t') && len(d.escape) < maxQPSpace:
		d.escape = append(d.escape, c)
		return dst, p[1:]
	}
	dst = append(dst, d.escape...)
	d.escape = d.escape[:0]
	return dst, p
}
