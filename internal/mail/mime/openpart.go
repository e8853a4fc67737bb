package mime

import (
	"errors"
	"io"

	"github.com/postroom/postroom/internal/mail"
)

// OpenPart returns the decoded content of the leaf part with the given number
// ([mail.Attachment.Part]). It reads r as needed and buffers only some lines.
// The error is ErrNoPart or that of r.
func OpenPart(r io.Reader, part int, lim mail.Limits) (io.Reader, error) {
	w := newWalker(r, lim)
	for {
		leaf, err := w.next()
		if errors.Is(err, io.EOF) {
			return nil, ErrNoPart
		}
		if err != nil {
			return nil, err
		}
		if leaf.number == part {
			return &partReader{w: w, decoder: newTransferDecoder(leaf.encoding)}, nil
		}
	}
}

// partReader reads the body of a leaf part on demand.
type partReader struct {
	w       *walker
	decoder transferDecoder
	buf     []byte // decoded
	read    int    // bytes of buf already read
	held    []byte // a line ending that may belong to a delimiter
	done    bool
}

// partBuffer is how much to decode at a time, in bytes.
const partBuffer = 16 << 10

// Read implements io.Reader.
func (p *partReader) Read(b []byte) (int, error) {
	if p.read == len(p.buf) {
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	if p.read == len(p.buf) {
		return 0, io.EOF
	}
	n := copy(b, p.buf[p.read:])
	p.read += n
	return n, nil
}

// fill decodes some lines.
func (p *partReader) fill() error {
	p.buf, p.read = p.buf[:0], 0
	sink := func(piece []byte) { p.buf = p.decoder.decode(p.buf, piece) }
	for len(p.buf) < partBuffer && !p.done {
		more, err := p.w.bodyLines(&p.held, sink)
		if err != nil {
			return err
		}
		if !more {
			p.done = true
			p.buf = p.decoder.finish(p.buf)
		}
	}
	return nil
}
