package outbound

import (
	"bufio"

	"github.com/postroom/postroom/smtp"
)

// DotWriter writes a mail as what follows DATA (RFC 5321 section 4.5.2): a line
// that begins with a dot gets another, and every line ends with CRLF, whatever
// it ended with before. No bare CR or LF ever leaves, so that no server can see
// the end of the mail elsewhere than we do.
type DotWriter struct {
	W         *bufio.Writer
	Unstuffed bool // write the lines only: no added dots and no final dot
	inLine    bool // the line that is being written is not empty
	cr        bool // the last byte was a CR, which is not written yet
}

// Write implements io.Writer.
func (d *DotWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		if d.cr { // CR LF and a CR alone both end the line
			d.endLine()
			if b[0] == '\n' {
				b = b[1:]
			}
			continue
		}
		if !d.inLine && !d.Unstuffed && b[0] == '.' {
			_ = d.W.WriteByte('.') // the writer keeps the error for the next call
		}
		end := smtp.FirstLineEnd(b)
		if end > 0 {
			if _, err := d.W.Write(b[:end]); err != nil {
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

func (d *DotWriter) endLine() {
	_, _ = d.W.Write(smtp.CRLF) // the writer keeps the error for the next call
	d.inLine, d.cr = false, false
}

// End ends the last line, writes the line with the dot, and sends all.
func (d *DotWriter) End() error {
	if d.inLine || d.cr {
		d.endLine()
	}
	if !d.Unstuffed {
		_, _ = d.W.WriteString(".\r\n") // Flush returns the error
	}
	return d.W.Flush()
}
