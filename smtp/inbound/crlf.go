package inbound

import (
	"bytes"
	"io"

	"github.com/postroom/postroom/smtp"
)

// crlf checks the data of a message on its way to a spool: its size, the length of its
// lines, and that CR and LF come in pairs only, so that no server takes something in the
// middle for the end of the message (RFC 5321 section 2.3.8, SMTP smuggling). With
// normalize, it converts a bare CR or LF to CRLF instead.
type crlf struct {
	to        io.Writer
	limit     int64
	normalize bool

	size  int64       // of what is stored, or would be
	line  int         // length of the current line
	cr    bool        // the last byte was a CR
	fault *smtp.Reply // what is wrong with the message; finish returns it
}

// Write accepts data in pieces of any size. Its error is that of the spool.
func (d *crlf) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if d.cr {
			d.cr = false
			if rest[0] == '\n' {
				rest = rest[1:]
			} else {
				d.bare()
			}
			if err := d.endLine(); err != nil {
				return 0, err
			}
			continue
		}
		n := smtp.FirstLineEnd(rest)
		if err := d.text(rest[:n]); err != nil {
			return 0, err
		}
		if n == len(rest) {
			break
		}
		if d.cr = rest[n] == '\r'; !d.cr {
			d.bare()
			if err := d.endLine(); err != nil {
				return 0, err
			}
		}
		rest = rest[n+1:]
	}
	return len(p), nil
}

// text stores a part of a line.
func (d *crlf) text(p []byte) error {
	if d.line += len(p); d.line > maxTextLine {
		d.fail(replyTextLine)
	}
	if bytes.IndexByte(p, 0) >= 0 {
		d.fail(replyNUL)
	}
	return d.keep(p)
}

func (d *crlf) endLine() error {
	d.line = 0
	return d.keep(smtp.CRLF)
}

// bare notes a CR or LF that stands alone.
func (d *crlf) bare() {
	if !d.normalize {
		d.fail(replyBareLineEnd)
	}
}

// keep stores p, unless the message is refused in the end.
func (d *crlf) keep(p []byte) error {
	if d.size += int64(len(p)); d.size > d.limit {
		d.fail(replyTooLarge)
	}
	if d.fault != nil {
		return nil
	}
	_, err := d.to.Write(p)
	return err
}

func (d *crlf) fail(r *smtp.Reply) {
	if d.fault == nil {
		d.fault = r
	}
}

// finish returns what is wrong with the message. A message that is not stored whole
// has an error.
func (d *crlf) finish() error {
	if d.fault != nil {
		return d.fault
	}
	return nil
}
