package httpserver

import (
	"bytes"
	"strconv"
)

// maxKept bounds how many bytes of a line are kept: the end of a request line,
// the start of any other line.
const maxKept = 256

var (
	transferEncoding = []byte("Transfer-Encoding")
	contentLength    = []byte("Content-Length")
	http10           = []byte(" HTTP/1.0")
)

// framing parses the bytes of a connection far enough to find requests whose end
// is ambiguous to HTTP programs: requests with both Content-Length and
// Transfer-Encoding, and HTTP/1.0 requests with Transfer-Encoding (RFC 9112
// section 6.1). net/http drops the Content-Length of these requests silently. A
// proxy that uses it would read the rest of the body as the next request.
type framing struct {
	part   requestPart
	line   []byte // the current line so far, at most maxKept bytes
	begun  bool   // the request line was read
	old    bool   // HTTP/1.0
	length bool   // Content-Length is present
	long   bool   // Content-Length is too long to read
	coded  bool   // Transfer-Encoding is present
	left   int64  // remaining bytes of the body or chunk
}

// requestPart is the part of a request that the next byte belongs to.
type requestPart int

const (
	inHead requestPart = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	// inDisorder follows an invalid chunk size. net/http reports the error to the
	// handler and closes the connection.
	inDisorder
)

// next reads p up to the end of the current request and returns the number of
// bytes read. ambiguous means that the request must be refused.
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

// endLine processes a complete line. over reports that it ends the request.
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

// readHead processes the request line or a header field.
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
