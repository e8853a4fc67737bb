package mime

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// LongPart is a leaf part with lines over a limit, that another transfer encoding
// would shorten without a change of the content.
type LongPart struct {
	Header, Body, End int64  // where its header, its body and what follows it begin
	Encoding          string // its transfer encoding, in lower case
	IsText            bool
}

// LongParts returns the leaf parts of a message that have a line of more than limit
// bytes. It leaves out those that must not be encoded again: messages, signed parts,
// and parts in an unknown encoding.
func LongParts(r io.Reader, lim mail.Limits, limit int) (list []LongPart, err error) {
	w := newWalker(r, lim)
	for {
		leaf, err := w.next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		kind := leaf.kind()
		p := LongPart{
			Header: w.headerAt, Body: w.lines.read, End: w.lines.read,
			Encoding: strings.ToLower(leaf.encoding), IsText: strings.HasPrefix(kind, "text/"),
		}
		kept := strings.HasPrefix(kind, "message/") || !isEncoding(p.Encoding) ||
			slices.ContainsFunc(w.stack, func(m openMultipart) bool { return m.subtype == "signed" })
		long, line := hasLongLine(w.header, limit), 0
		err = w.body(func(piece []byte) {
			if len(piece) == 0 {
				return
			}
			p.End += int64(len(piece))
			if line += len(piece); piece[len(piece)-1] == '\n' {
				line = 0
			}
			long = long || line > limit
		})
		if err != nil {
			return nil, err
		}
		if long && !kept {
			list = append(list, p)
		}
	}
}

// hasLongLine reports whether a header has a line of more than limit bytes.
func hasLongLine(header []byte, limit int) bool {
	for line := range bytes.Lines(header) {
		if text, _ := cutLineEnd(line); len(text) > limit {
			return true
		}
	}
	return false
}

// isEncoding reports whether this package knows a transfer encoding.
func isEncoding(encoding string) bool {
	switch encoding {
	case "", "7bit", "8bit", "binary", "7-bit", "8-bit": // they encode nothing
		return true
	}
	_, unknown := newTransferDecoder(encoding).(identityDecoder)
	return !unknown
}

// DecodeBody returns a reader of the content of a body in a transfer encoding.
func DecodeBody(body io.Reader, encoding string) io.Reader {
	return &bodyReader{r: body, decoder: newTransferDecoder(encoding), in: make([]byte, partBuffer)}
}

type bodyReader struct {
	r       io.Reader
	decoder transferDecoder
	in      []byte
	buf     []byte // decoded
	read    int    // bytes of buf already read
	err     error
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	for b.read == len(b.buf) && b.err == nil {
		var n int
		n, b.err = b.r.Read(b.in)
		b.buf, b.read = b.decoder.decode(b.buf[:0], b.in[:n]), 0
		if errors.Is(b.err, io.EOF) {
			b.buf = b.decoder.finish(b.buf)
		}
	}
	if b.read == len(b.buf) {
		return 0, b.err
	}
	n := copy(p, b.buf[b.read:])
	b.read += n
	return n, nil
}
