package inbound

import (
	"bytes"

	"github.com/postroom/postroom/smtp"
)

var lf = []byte("\n")

// dataSink receives the data of a message from DATA or BDAT. It checks the size,
// the length of lines, and that every line ends with CRLF, so that the end of the
// message is unambiguous (RFC 5321 section 2.3.8). With normalize, it converts a
// bare CR or LF to CRLF instead, and CR CR LF, which broken clients send, to one
// CRLF.
type dataSink struct {
	spool     *Spool
	limit     int64
	normalize bool

	size  int64       // bytes received, stored or not
	line  int         // length of the current line
	cr    bool        // the last byte was CR
	crs   int         // with normalize, the CRs at the end that are not stored yet, at most two
	fault *smtp.Reply // error of the message, returned at its end
}

// Write accepts data in pieces of any size. If its error is a *smtp.Reply, the
// data may be an attack (SMTP smuggling) and the connection must be closed.
func (d *dataSink) Write(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case bytes.IndexByte(p, 0) >= 0:
		return 0, replyNUL
	case d.normalize:
		return len(p), d.writeCRLF(p)
	case !d.linesEnd(p):
		return 0, replyBareLineEnd
	}
	return len(p), d.keep(p)
}

// keep spools p unless the message has an error.
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

// goOn and endLine measure the length of lines.
func (d *dataSink) goOn(n int) {
	if d.line += n; d.line > maxTextLine && d.fault == nil {
		d.fault = replyTextLine
	}
}

func (d *dataSink) endLine(n int) {
	d.goOn(n)
	d.line = 0
}

// writeCRLF stores p with CRLF for every line end: CR LF, CR CR LF, a bare CR, or a
// bare LF.
func (d *dataSink) writeCRLF(p []byte) error {
	all := p
	for len(p) > 0 {
		if d.crs > 0 && p[0] != '\r' {
			if p[0] == '\n' {
				p, d.crs = p[1:], 1
			}
			if err := d.endCRs(); err != nil {
				return err
			}
			continue
		}
		if p[0] != '\r' || bytes.HasSuffix(all[:len(all)-len(p)], lf) { // no CR before p
			if n := d.wholeLines(p); n > 0 {
				if err := d.keep(p[:n]); err != nil {
					return err
				}
				p = p[n:]
				continue
			}
		}
		n := smtp.FirstLineEnd(p)
		d.goOn(n)
		if err := d.keep(p[:n]); err != nil {
			return err
		}
		if n == len(p) {
			break
		}
		if p[n] == '\r' && d.crs < 2 {
			d.crs++
		} else if err := d.newLine(); err != nil { // a bare LF, or the first of three CRs
			return err
		}
		p = p[n+1:]
	}
	return nil
}

// endCRs stores a line end for each CR at the end.
func (d *dataSink) endCRs() error {
	for ; d.crs > 0; d.crs-- {
		if err := d.newLine(); err != nil {
			return err
		}
	}
	return nil
}

func (d *dataSink) newLine() error {
	d.endLine(0)
	return d.keep(smtp.CRLF)
}

// finish returns the error of the whole message.
func (d *dataSink) finish() error {
	switch {
	case d.cr:
		return replyBareLineEnd
	case d.crs > 0:
		if err := d.endCRs(); err != nil {
			return err
		}
	}
	if d.fault != nil {
		return d.fault
	}
	return nil
}

// wholeLines returns the length of the lines at the start of p that end with CRLF.
func (d *dataSink) wholeLines(p []byte) (length int) {
	for {
		line := p[length:]
		n := smtp.FirstLineEnd(line)
		if !bytes.HasPrefix(line[n:], smtp.CRLF) {
			return length
		}
		d.endLine(n)
		length += n + len(smtp.CRLF)
	}
}

// runaway reports whether the message is so large that the server stops reading
// it.
func (d *dataSink) runaway() bool { return d.size > d.limit+overrun }
