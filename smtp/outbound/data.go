package outbound

import (
	"bufio"

	"github.com/postroom/postroom/smtp"
)

// DotWriter encodes a message for DATA (RFC 5321 section 4.5.2): it doubles a
// leading dot and ends every line with CRLF. It never writes a bare CR or LF, so
// that every server sees the same end of the message.
type DotWriter struct {
	W         *bufio.Writer
	Unstuffed bool // write the lines only: no added dots and no final dot
	inLine    bool // the current line is not empty
	cr        bool // the last byte was a CR that is not written yet
}

func (d *DotWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		if d.cr { // both CR LF and a bare CR end the line
			d.endLine()
			if b[0] == '\n' {
				b = b[1:]
			}
			continue
		}
		if !d.inLine && !d.Unstuffed && b[0] == '.' {
			_ = d.W.WriteByte('.') // the writer returns the error from the next call
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
	_, _ = d.W.Write(smtp.CRLF) // the writer returns the error from the next call
	d.inLine, d.cr = false, false
}

// End ends the last line, writes the final dot and flushes.
func (d *DotWriter) End() error {
	if d.inLine || d.cr {
		d.endLine()
	}
	if !d.Unstuffed {
		_, _ = d.W.WriteString(".\r\n") // Flush returns the error
	}
	return d.W.Flush()
}
