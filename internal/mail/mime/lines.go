package mime

import (
	"bytes"
	"errors"
	"io"
)

// lineReader reads a message line by line. It gives lines longer than its buffer
// in pieces, so that its memory is bounded whatever it reads.
type lineReader struct {
	r      io.Reader
	buf    []byte
	start  int // of what is not yet given
	end    int // of what is read
	err    error
	middle bool // the next piece continues a line
}

const (
	minLineBuffer = 4 << 10
	maxLineBuffer = 64 << 10
)

// newLineReader returns a reader whose buffer is as small as r allows.
func newLineReader(r io.Reader) *lineReader {
	size := maxLineBuffer
	if l, ok := r.(interface{ Len() int }); ok {
		size = min(max(l.Len()+1, minLineBuffer), maxLineBuffer)
	}
	return &lineReader{r: r, buf: make([]byte, size)}
}

// next returns the next line with its line end, valid until the next call.
// first tells whether it begins a line. The error is io.EOF after the last
// line, or what the reader returned.
func (l *lineReader) next() (line []byte, first bool, err error) {
	searched := 0
	for {
		if n := bytes.IndexByte(l.buf[l.start+searched:l.end], '\n'); n >= 0 {
			return l.take(searched + n + 1)
		}
		searched = l.end - l.start
		if searched == len(l.buf) || l.err != nil {
			if searched == 0 {
				return nil, false, l.err
			}
			return l.take(searched)
		}
		l.fill()
	}
}

// unread returns the number of bytes in the buffer that are not yet given.
func (l *lineReader) unread() int { return l.end - l.start }

// rest returns a reader of what next has not given yet. Then next must not be
// called any more.
func (l *lineReader) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(l.buf[l.start:l.end]), l.r)
}

// unreadLine restores the line that next returned last. It must have been the
// beginning of a line.
func (l *lineReader) unreadLine(line []byte) {
	l.start -= len(line)
	l.middle = false
}

func (l *lineReader) take(n int) (line []byte, first bool, err error) {
	line = l.buf[l.start : l.start+n]
	l.start += n
	first = !l.middle
	l.middle = line[n-1] != '\n'
	return line, first, nil
}

// maxEmptyReads is how often a reader may return nothing, as in bufio.
const maxEmptyReads = 100

func (l *lineReader) fill() {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	for range maxEmptyReads {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if err != nil {
			l.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// readError returns the error of the reader, nil for the end of the message.
func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// cutLineEnd splits a line from its CRLF or LF.
func cutLineEnd(line []byte) (text, end []byte) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		n--
		if n > 0 && line[n-1] == '\r' {
			n--
		}
	}
	return line[:n], line[n:]
}
