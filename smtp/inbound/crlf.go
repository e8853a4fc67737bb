package inbound

import (
	"io"

	"github.com/postroom/postroom/smtp"
)

// crlf checks the data of a message on its way to a spool: its size, the length of its
// lines, and that they end with CRLF, so that no server takes something in the middle for
// the end of the message (RFC 5321 section 2.3.8, SMTP smuggling). With normalize, it
// converts a bare LF to CRLF instead. conn.data has made a bare CR a bare LF, or NUL if it
// is to be dropped.
type crlf struct {
	to        io.Writer
	limit     int64
	normalize bool

	size  int64       // of what is stored, or would be
	line  int         // length of the current line
	cr    bool        // the last byte was a CR
	fault *smtp.Reply // what is wrong with the message, which then is not stored whole
}

// Write accepts data in pieces of any size. Its error is that of the spool.
func (d *crlf) Write(p []byte) (int, error) {
	from := 0 // where the bytes begin that are not stored yet
	for i, b := range p {
		var end []byte
		switch {
		case b == '\n' && !d.cr:
			if end = smtp.CRLF; !d.normalize {
				d.fail(replyBareLineEnd)
			}
			d.line = 0
		case b == '\n':
			d.line = 0
		default:
			if d.line++; d.line > maxTextLine+1 {
				d.fail(replyTextLine)
			}
		}
		d.cr = b == '\r'
		if b != 0 && end == nil {
			continue
		}
		if err := d.keep(p[from:i]); err != nil {
			return 0, err
		}
		if err := d.keep(end); err != nil {
			return 0, err
		}
		from = i + 1
	}
	return len(p), d.keep(p[from:])
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
