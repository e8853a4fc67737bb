package inbound

import (
	"bytes"

	"github.com/postroom/postroom/smtp"
)

// dataSink takes the data of one mail. It checks what both ways to send it have
// in common: the size, the length of lines, and that every line ends in CRLF, so
// that there is no doubt anywhere where a line, and so the mail, ends (RFC 5321
// section 2.3.8). With normalize, CR and LF that stand alone become CRLF instead.
type dataSink struct {
	spool     *Spool
	limit     int64
	normalize bool

	size  int64       // of the data, stored or not
	line  int         // of the line that is being read
	cr    bool        // the last byte was CR; with normalize, it is not stored yet
	fault *smtp.Reply // what is wrong with the mail, said at its end
}

// Write takes data in pieces of any size. Its error, when it is a *Reply, is
// about what may have been sent to fool us or others: the client is to be cut
// off.
func (d *dataSink) Write(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case bytes.IndexByte(p, 0) >= 0:
		return 0, replyNUL
	case d.normalize:
		return len(p), d.mend(p)
	case !d.linesEnd(p):
		return 0, replyBareLineEnd
	}
	return len(p), d.keep(p)
}

// keep spools p, while nothing is wrong with the mail.
func (d *dataSink) keep(p []byte) error {
	if d.size += int64(len(p)); d.size > d.limit {
		d.fault = replyTooLarge
	}
	if d.fault != nil {
		return nil
	}
	_, err := d.spool.Write(p)
	return err
}

// linesEnd reports whether CR and LF come in pairs only.
func (d *dataSink) linesEnd(p []byte) bool {
	if d.cr {
		if p[0] != '\n' {
			return false
		}
		p = p[1:]
		d.endLine(0)
	}
	for {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			break
		}
		if n == 0 || bytes.IndexByte(p[:n], '\r') != n-1 {
			return false
		}
		d.endLine(n - 1)
		p = p[n+1:]
	}
	cr := bytes.IndexByte(p, '\r')
	d.cr = cr >= 0
	if d.cr && cr != len(p)-1 {
		return false
	}
	if d.cr {
		p = p[:cr]
	}
	d.goOn(len(p))
	return true
}

// goOn and endLine measure lines by their pieces.
func (d *dataSink) goOn(n int) {
	if d.line += n; d.line > maxTextLine && d.fault == nil {
		d.fault = replyTextLine
	}
}

func (d *dataSink) endLine(n int) {
	d.goOn(n)
	d.line = 0
}

// mend keeps p with CRLF for every line end.
func (d *dataSink) mend(p []byte) error {
	for len(p) > 0 {
		if d.cr { // CR LF and a CR alone both end the line
			if p[0] == '\n' {
				p = p[1:]
			}
			d.cr = false
			if err := d.newLine(); err != nil {
				return err
			}
			continue
		}
		n := smtp.FirstLineEnd(p)
		d.goOn(n)
		if err := d.keep(p[:n]); err != nil {
			return err
		}
		if n == len(p) {
			break
		}
		if d.cr = p[n] == '\r'; !d.cr {
			if err := d.newLine(); err != nil {
				return err
			}
		}
		p = p[n+1:]
	}
	return nil
}

func (d *dataSink) newLine() error {
	d.endLine(0)
	return d.keep(smtp.CRLF)
}

// finish returns what is wrong with the mail as a whole.
func (d *dataSink) finish() error {
	switch {
	case d.cr && d.normalize:
		d.cr = false
		if err := d.newLine(); err != nil {
			return err
		}
	case d.cr:
		return replyBareLineEnd
	}
	if d.fault != nil {
		return d.fault
	}
	return nil
}

// runaway says that the mail is so much too large that its end is not awaited.
func (d *dataSink) runaway() bool { return d.size > d.limit+overrun }
