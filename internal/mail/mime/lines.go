package mime

import (
	"bytes"
	"errors"
	"io"
)

// lineReader reads a message line by line. It returns lines longer than its
// buffer in pieces, so its memory is bounded.
type lineReader struct {
	r      io.Reader
	buf    []byte
	start  int  // start of unread data in buf
	end    int  // end of data in buf
	many   bool // take returns more than a line
	err    error
	middle bool  // the next piece continues a line
	read   int64 // bytes returned by next, without those that were unread

	back     []byte // data to read before that of buf, which does not have it any more
	backAt   int    // start of unread data in back
	fromBack bool   // the last line came from back
}

const (
	minLineBuffer = 4 << 10
	maxLineBuffer = 64 << 10
)

// newLineReader returns a reader with the smallest sufficient buffer for r, or a
// small one that grows if r does not say its length.
func newLineReader(r io.Reader) *lineReader {
	size := minLineBuffer
	if l, ok := r.(interface{ Len() int }); ok {
		size = min(max(l.Len()+1, minLineBuffer), maxLineBuffer)
	}
	return &lineReader{r: r, buf: make([]byte, size)}
}

// next returns the next line with its line ending, valid until the next call.
// first reports whether line begins a line rather than continues one. The error
// is io.EOF after the last line, or that of the reader.
func (l *lineReader) next() (line []byte, first bool, err error) {
	if l.fromBack = len(l.back) > l.backAt; l.fromBack {
		return l.takeBack()
	}
	searched := 0
	for {
		if n := bytes.IndexByte(l.buf[l.start+searched:l.end], '\n'); n >= 0 {
			return l.take(searched + n + 1)
		}
		searched = l.end - l.start
		if searched == maxLineBuffer || l.err != nil {
			if searched == 0 {
				return nil, false, l.err
			}
			return l.take(searched)
		}
		l.fill()
	}
}

// takeBack returns the next line of back.
func (l *lineReader) takeBack() (line []byte, first bool, err error) {
	line = l.back[l.backAt:]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n+1]
	}
	l.backAt += len(line)
	l.read += int64(len(line))
	first = !l.middle
	l.middle = line[len(line)-1] != '\n'
	return line, first, nil
}

// unread returns the number of unread bytes that are in memory.
func (l *lineReader) unread() int { return len(l.back) - l.backAt + l.end - l.start }

// rest returns a reader for the unread data. Do not call next after it.
func (l *lineReader) rest() io.Reader {
	return io.MultiReader(bytes.NewReader(l.back[l.backAt:]), bytes.NewReader(l.buf[l.start:l.end]), l.r)
}

// unreadLines undoes the last calls of next, which must have returned data, the
// beginning of a line first.
func (l *lineReader) unreadLines(data []byte) {
	l.middle = false
	l.read -= int64(len(data))
	switch {
	case l.fromBack: // so was all of data
		l.backAt -= len(data)
	case len(data) <= l.start:
		l.start -= len(data)
	default: // buf has only the end of it
		l.back, l.backAt = bytes.Clone(data), 0
	}
}

func (l *lineReader) take(n int) (line []byte, first bool, err error) {
	if l.many {
		n = l.runLen(n)
	}
	line = l.buf[l.start : l.start+n]
	l.start += n
	l.read += int64(n)
	first = !l.middle
	l.middle = line[n-1] != '\n'
	return line, first, nil
}

// run is like next, but returns all whole lines that are in the buffer, up to one
// that begins with "--". Such a line is returned alone.
func (l *lineReader) run() (lines []byte, first bool, err error) {
	l.many = true
	defer func() { l.many = false }()
	return l.next()
}

var dashes = []byte("--")

// runLen returns the length of the run that begins with a line of n bytes.
func (l *lineReader) runLen(n int) int {
	data := l.buf[l.start:l.end]
	if bytes.HasPrefix(data, dashes) {
		return n
	}
	if i := bytes.Index(data[n-1:], []byte("\n--")); i >= 0 {
		return n + i
	}
	return max(n, bytes.LastIndexByte(data, '\n')+1)
}

// maxEmptyReads is the number of empty reads before an error, as in bufio.
const maxEmptyReads = 100

// growBy is how much larger the next buffer is.
const growBy = 4

// fill reads more. A full buffer is replaced by a larger one: the message or a line
// is longer than it.
func (l *lineReader) fill() {
	to := l.buf
	if l.end == len(l.buf) && len(l.buf) < maxLineBuffer {
		to = make([]byte, min(growBy*len(l.buf), maxLineBuffer))
	}
	l.end = copy(to, l.buf[l.start:l.end])
	l.buf, l.start = to, 0
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

// readError returns err, or nil for io.EOF.
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
