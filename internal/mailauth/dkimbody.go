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

// bodyHash is the hash of a body in canonical form, or of its first bytes.
type bodyHash struct {
	form  form
	limit int64 // l=; -1 is the whole body

	sum  hash.Hash
	left int64 // of limit
	over bool  // the body goes on after limit
}

// newBodyHash returns a hash for a signature with that l=, empty when it has
// none.
func newBodyHash(f form, l string) *bodyHash {
	limit := int64(-1)
	if l != "" {
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			n = 1<<63 - 1 // more than any mail has
		}
		limit = n
	}
	return &bodyHash{form: f, limit: limit, left: limit, sum: sha256.New()}
}

func (b *bodyHash) write(p []byte) {
	if b.limit < 0 {
		_, _ = b.sum.Write(p) // a hash takes everything
		return
	}
	n := min(int64(len(p)), b.left)
	_, _ = b.sum.Write(p[:n])
	b.left -= n
	b.over = b.over || n < int64(len(p))
}

// short says that the body ends before l= does.
func (b *bodyHash) short() bool { return b.limit >= 0 && b.left > 0 }

// canonicalBody brings a body into one canonical form and gives it to the hashes
// that want it so. It holds no more than one line end back.
type canonicalBody struct {
	form   form
	hashes []*bodyHash

	blank   int64 // empty lines that are written only when more follows
	space   bool  // relaxed: white space that is written only when more follows
	started bool  // the line has something in it
	cr      bool  // a CR that may be of a line end
	empty   bool  // nothing was written
	out     []byte
}

func newCanonicalBody(f form) *canonicalBody { return &canonicalBody{form: f, empty: true} }

// share returns the hash for what h wants: one that is there, or h itself.
func (b *canonicalBody) share(h *bodyHash) *bodyHash {
	for _, there := range b.hashes {
		if there.limit == h.limit {
			return there
		}
	}
	b.hashes = append(b.hashes, h)
	return h
}

// readBody gives a body to every form of it.
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

// write takes a line, or a piece of a long one.
func (b *canonicalBody) write(p []byte) {
	b.out = b.out[:0]
	text, ended := bytes.CutSuffix(p, []byte("\n"))
	if ended {
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		} else if n == 0 {
			b.cr = false // the line end came in two pieces
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

// text takes what stands in a line.
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

// end ends the body, with a line end if it has none. A body without lines is
// one empty line in simple form, and nothing in relaxed form (RFC 6376 section
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
