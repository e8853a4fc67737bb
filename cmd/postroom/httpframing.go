package main

import (
	"bytes"
	"strconv"
)

// maxKept bounds what is kept of a line: the end of a request line, and the
// beginning of any other.
const maxKept = 256

var (
	transferEncoding = []byte("Transfer-Encoding")
	contentLength    = []byte("Content-Length")
	http10           = []byte(" HTTP/1.0")
)

// framing follows the bytes of a connection far enough to find requests whose end
// two HTTP programs may see in different places: those with both Content-Length
// and Transfer-Encoding, and HTTP/1.0 requests with Transfer-Encoding (RFC 9112
// section 6.1). net/http drops the Content-Length of such a request silently. A
// proxy that goes by it would take the rest of the body for the next request.
type framing struct {
	part   requestPart
	line   []byte // the current line so far, at most maxKept bytes
	begun  bool   // the request line was read
	old    bool   // HTTP/1.0
	length bool   // there is a Content-Length
	long   bool   // and it is too long to read
	coded  bool   // there is a Transfer-Encoding
	left   int64  // bytes of the body or the chunk that are still to come
}

// requestPart is what the next byte of a connection belongs to.
type requestPart int

const (
	inHead requestPart = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	// inDisorder follows a chunk size that cannot be read. net/http reports the
	// error to the handler, and closes the connection.
	inDisorder
)

// next reads p up to the end of the current request, and returns how many bytes
// that are. ambiguous means that the request must be refused.
func (f *framing) next(p []byte) (n int, ambiguous bool) {
	for n < len(p) {
		switch f.part {
		case inDisorder:
			return len(p), false
		case inBody, inChunk:
			some := int(min(f.left, int64(len(p)-n)))
			n += some
			f.left -= int64(some)
			if f.left > 0 {
				continue
			}
			if f.part == inBody {
				*f = framing{line: f.line[:0]}
				return n, false
			}
			f.part = inChunkSize
		default:
			end := bytes.IndexByte(p[n:], '\n')
			if end < 0 {
				f.keep(p[n:])
				return len(p), false
			}
			f.keep(p[n : n+end])
			n += end + 1
			over, ambiguous := f.endLine(bytes.TrimSuffix(f.line, []byte("\r")))
			f.line = f.line[:0]
			if over {
				*f = framing{line: f.line}
			}
			if over || ambiguous {
				return n, ambiguous
			}
		}
	}
	return n, false
}

func (f *framing) keep(p []byte) {
	if f.part != inHead || f.begun {
		f.line = append(f.line, p[:min(len(p), maxKept-len(f.line))]...)
		return
	}
	f.line = append(f.line, p[max(0, len(p)-maxKept):]...)
	if more := len(f.line) - maxKept; more > 0 {
		f.line = append(f.line[:0], f.line[more:]...)
	}
}

// endLine reads a whole line. over means that it ends the request.
func (f *framing) endLine(line []byte) (over, ambiguous bool) {
	switch f.part {
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 62)
		switch {
		case err != nil || n < 0:
			f.part = inDisorder
		case n == 0:
			f.part = inTrailer
		default:
			f.part, f.left = inChunk, n+int64(len("\r\n"))
		}
		return false, false
	case inTrailer:
		return len(line) == 0, false
	}
	if len(line) > 0 {
		f.readHead(line)
		return false, false
	}
	switch {
	case !f.begun: // net/http skips empty lines before a request
		return false, false
	case f.coded && (f.length || f.old), f.long:
		return false, true
	case f.coded:
		f.part = inChunkSize
		return false, false
	case f.left > 0:
		f.part = inBody
		return false, false
	}
	return true, false
}

// readHead reads the request line or a field of the header.
func (f *framing) readHead(line []byte) {
	if !f.begun {
		f.begun, f.old = true, bytes.HasSuffix(line, http10)
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case bytes.EqualFold(name, transferEncoding):
		f.coded = true
	case bytes.EqualFold(name, contentLength):
		f.length, f.long = true, len(f.line) == maxKept
		// net/http refuses a value that is not a number.
		f.left, _ = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
	}
}
