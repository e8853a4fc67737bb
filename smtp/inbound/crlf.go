package inbound

import (
	"bytes"
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
	for rest := p; len(rest) > 0; {
		text, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(text) > 0 {
			d.cr = text[len(text)-1] == '\r'
		}
		if d.line += len(text); d.line > maxTextLine+1 {
			d.fail(replyTextLine)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			text = bytes.ReplaceAll(text, []byte{0}, nil)
		}
		err := d.keep(text)
		if ended && err == nil {
			err = d.endLine()
		}
		if err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// endLine stores the LF at the end of a line.
func (d *crlf) endLine() error {
	end := smtp.CRLF[1:]
	if !d.cr {
		if end = smtp.CRLF; !d.normalize {
			d.fail(replyBareLineEnd)
		}
	}
	d.line, d.cr = 0, false
	return d.keep(end)
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
