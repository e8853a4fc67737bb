package mailauth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strconv"
)

// bodyHash is the hash of a canonical body, or of its first limit bytes.
type bodyHash struct {
	form  form
	limit int64 // l=; -1 is the whole body

	sum  hash.Hash
	left int64 // bytes left of limit
	over bool  // the body is longer than limit
}

// newBodyHash returns a hash for a signature with length tag l, which is empty
// if the signature has none.
func newBodyHash(f form, l string) *bodyHash {
	limit := int64(-1)
	if l != "" {
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			n = 1<<63 - 1 // longer than any message
		}
		limit = n
	}
	return &bodyHash{form: f, limit: limit, left: limit, sum: sha256.New()}
}

func (b *bodyHash) write(p []byte) {
	if b.limit < 0 {
		_, _ = b.sum.Write(p) // a hash never returns an error
		return
	}
	n := min(int64(len(p)), b.left)
	_, _ = b.sum.Write(p[:n])
	b.left -= n
	b.over = b.over || n < int64(len(p))
}

// short reports whether the body is shorter than l=.
func (b *bodyHash) short() bool { return b.limit >= 0 && b.left > 0 }

// canonicalBody converts a body to one canonical form and writes it to hashes.
// It buffers at most one line ending.
type canonicalBody struct {
	form   form
	hashes []*bodyHash

	blank   int64 // empty lines, written only if more text follows
	space   bool  // relaxed: white space, written only if more text follows
	started bool  // the line is not empty
	cr      bool  // a CR that may belong to a line ending
	empty   bool  // nothing has been written
	out     []byte
}

func newCanonicalBody(f form) *canonicalBody { return &canonicalBody{form: f, empty: true} }

// share returns the existing hash with the limit of h, or adds h.
func (b *canonicalBody) share(h *bodyHash) *bodyHash {
	for _, there := range b.hashes {
		if there.limit == h.limit {
			return there
		}
	}
	b.hashes = append(b.hashes, h)
	return h
}

// readBody writes a body to all forms.
func readBody(r io.Reader, forms []*canonicalBody) error {
	br := bufio.NewReaderSize(r, 16<<10)
	for {
		piece, err := br.ReadSlice('\n')
		for _, b := range forms {
			b.write(piece)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	for _, b := range forms {
		b.end()
	}
	return nil
}

// write writes a line, or part of a long one.
func (b *canonicalBody) write(p []byte) {
	b.out = b.out[:0]
	text, ended := bytes.CutSuffix(p, []byte("\n"))
	if ended {
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		} else if n == 0 {
			b.cr = false // the line ending came in two pieces
		}
	}
	if b.cr && (len(text) > 0 || !ended) {
		b.text([]byte("\r"))
	}
	b.cr = false
	if n := len(text); !ended && n > 0 && text[n-1] == '\r' {
		b.cr, text = true, text[:n-1]
	}
	b.text(text)
	if ended {
		b.line()
	}
	b.flush()
}

// text writes text within a line.
func (b *canonicalBody) text(p []byte) {
	if b.form == simpleForm {
		if len(p) > 0 {
			b.begin()
			b.out = append(b.out, p...)
		}
		return
	}
	for _, c := range p {
		if c == ' ' || c == '\t' {
			b.space = true
			continue
		}
		b.begin()
		if b.space {
			b.out = append(b.out, ' ')
			b.space = false
		}
		b.out = append(b.out, c)
	}
}

// begin writes the empty lines before the first byte of a line.
func (b *canonicalBody) begin() {
	if b.started {
		return
	}
	b.started = true
	for ; b.blank > 0; b.blank-- {
		if b.out = append(b.out, "\r\n"...); len(b.out) > 16<<10 {
			b.flush()
			b.out = b.out[:0]
		}
	}
}

// line ends a line.
func (b *canonicalBody) line() {
	if b.started {
		b.out = append(b.out, "\r\n"...)
	} else {
		b.blank++
	}
	b.started, b.space = false, false
}

// end ends the body, adding a missing line ending. An empty body becomes one
// empty line in simple form and nothing in relaxed form (RFC 6376 sections
// 3.4.3 and 3.4.4).
func (b *canonicalBody) end() {
	b.out = b.out[:0]
	if b.cr {
		b.text([]byte("\r"))
	}
	if b.started {
		b.line()
	}
	if b.empty && len(b.out) == 0 && b.form == simpleForm {
		b.out = append(b.out, "\r\n"...)
	}
	b.flush()
}

func (b *canonicalBody) flush() {
	if len(b.out) == 0 {
		return
	}
	b.empty = false
	for _, h := range b.hashes {
		h.write(b.out)
	}
}
