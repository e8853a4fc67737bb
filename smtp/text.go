package smtp

import (
	"bytes"
)

// CRLF ends every line of SMTP and of a message.
var CRLF = []byte("\r\n")

// veryShort is the length of a line below which a search of its own costs more than to
// look at its bytes.
const veryShort = 8

// FirstLineEnd returns the index of the first CR or LF in b, or len(b). It searches a
// growing part of b, so that its time depends on the line and not on what follows.
func FirstLineEnd(b []byte) int {
	for i, c := range b[:min(veryShort, len(b))] {
		if c == '\r' || c == '\n' {
			return i
		}
	}
	for size := 128; ; size *= 2 {
		part := b[:min(size, len(b))]
		if lf := bytes.IndexByte(part, '\n'); lf >= 0 {
			part = part[:lf]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			return cr
		}
		if len(part) < size {
			return len(part)
		}
	}
}
