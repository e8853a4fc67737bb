package inbound

import (
	"cmp"
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

	size  int64 // of what is stored, or would be
	line  int   // length of the current line
	cr    bool  // the last byte was a CR
	fault error // why the message is not stored: a *smtp.Reply, or an error of to
}

// Write accepts data in pieces of any size. It returns no error, so that the message is
// read to its end.
func (d *crlf) Write(p []byte) (int, error) {
	from := 0 // where the bytes begin that are not stored yet
	for i, b := range p {
		bare := b == '\n' && !d.cr
		d.cr = b == '\r'
		if d.line++; b == '\n' {
			d.line = 0
		} else if d.line > maxTextLine+1 {
			d.fail(replyTextLine)
		}
		if !bare && b != 0 {
			continue
		}
		d.keep(p[from:i])
		if from = i + 1; bare {
			d.keep(smtp.CRLF)
		}
		if bare && !d.normalize {
			d.fail(replyBareLineEnd)
		}
	}
	d.keep(p[from:])
	return len(p), nil
}

// keep stores p, unless the message is refused in the end.
func (d *crlf) keep(p []byte) {
	if d.size += int64(len(p)); d.size > d.limit {
		d.fail(replyTooLarge)
	}
	if d.fault == nil {
		if _, err := d.to.Write(p); err != nil {
			d.fail(err)
		}
	}
}

func (d *crlf) fail(err error) { d.fault = cmp.Or(d.fault, err) }
