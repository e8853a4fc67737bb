package smtp

import (
	"bufio"
	"bytes"
)

// dotWriter writes a mail as what follows DATA (RFC 5321 section 4.5.2): a line
// that begins with a dot gets another, and every line ends with CRLF, whatever
// it ended with before. No bare CR or LF ever leaves, so that no server can see
// the end of the mail elsewhere than we do.
type dotWriter struct {
	w         *bufio.Writer
	unstuffed bool // write the lines only: no added dots and no final dot
	inLine    bool // the line that is being written is not empty
	cr        bool // the last byte was a CR, which is not written yet
}

var crlf = []byte("\r\n")

// Write implements io.Writer.
func (d *dotWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		if d.cr { // CR LF and a CR alone both end the line
			d.endLine()
			if b[0] == '\n' {
				b = b[1:]
			}
			continue
		}
		if !d.inLine && !d.unstuffed && b[0] == '.' {
			_ = d.w.WriteByte('.') // the writer keeps the error for the next call
		}
		end := firstLineEnd(b)
		if end > 0 {
			if _, err := d.w.Write(b[:end]); err != nil {
				return total - len(b), err
			}
			d.inLine = true
		}
		if end == len(b) {
			break
		}
		if b[end] == '\r' {
			d.cr = true
		} else {
			d.endLine()
		}
		b = b[end+1:]
	}
	return total, nil
}

func (d *dotWriter) endLine() {
	_, _ = d.w.Write(crlf) // the writer keeps the error for the next call
	d.inLine, d.cr = false, false
}

// end ends the last line, writes the line with the dot, and sends all.
func (d *dotWriter) end() error {
	if d.inLine || d.cr {
		d.endLine()
	}
	if !d.unstuffed {
		_, _ = d.w.WriteString(".\r\n") // Flush returns the error
	}
	return d.w.Flush()
}

// firstLineEnd is where the first CR or LF of b is, or its length.
func firstLineEnd(b []byte) int {
	if lf := bytes.IndexByte(b, '\n'); lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return len(b)
}
