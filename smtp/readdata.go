package smtp

import "bytes"

// overrun is how much of a mail that is too large is read over, beyond the
// limit, in the hope of its end. A client that sends on is cut off.
const overrun = 512 << 10

var (
	endOfData = []byte(".\r\n")
	lineEnd   = []byte("\r\n")
)

// dataSink takes the data of one mail. It checks what both ways to send it have
// in common: the size, and that every line ends in CRLF, so that there is no
// doubt anywhere where a line, and so the mail, ends (RFC 5321 section 2.3.8).
type dataSink struct {
	spool *Spool
	limit int64
	size  int64 // of the data, stored or not
	cr    bool  // the last byte was CR
}

// Write takes data in pieces of any size.
func (d *dataSink) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !d.linesEnd(p) {
		return 0, replyBareLineEnd
	}
	if d.size += int64(len(p)); d.size > d.limit {
		return len(p), nil // finish says so
	}
	return d.spool.Write(p)
}

// linesEnd reports whether CR and LF come in pairs only.
func (d *dataSink) linesEnd(p []byte) bool {
	if d.cr {
		if p[0] != '\n' {
			return false
		}
		p = p[1:]
	}
	for {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			break
		}
		if n == 0 || bytes.IndexByte(p[:n], '\r') != n-1 {
			return false
		}
		p = p[n+1:]
	}
	cr := bytes.IndexByte(p, '\r')
	d.cr = cr >= 0
	return cr < 0 || cr == len(p)-1
}

// finish returns what is wrong with the mail as a whole.
func (d *dataSink) finish() error {
	if d.cr {
		return replyBareLineEnd
	}
	if d.size > d.limit {
		return replyTooLarge
	}
	return nil
}

// runaway says that the mail is so much too large that its end is not awaited.
func (d *dataSink) runaway() bool { return d.size > d.limit+overrun }

// readData reads the data after DATA up to its end, which only CRLF.CRLF is,
// and takes the dots of transparency off (RFC 5321 section 4.5.2). Where the
// end is not found or not looked for, the connection ends with the reply.
func (w *wire) readData(spool *Spool) error {
	d := &dataSink{spool: spool, limit: w.server.cfg.MaxSize}
	err := w.copyData(d)
	w.handed = endOfData // go-smtp looks for it too, and finds it at once
	if err != nil {
		w.unread = true
		w.ended.Store(true)
		return err
	}
	return d.finish()
}

// copyData moves lines from the connection to d until the end of the data.
func (w *wire) copyData(d *dataSink) error {
	for begins := true; ; {
		n, end, err := w.copyBuffered(d, begins)
		if n > 0 {
			begins = (*w.buf)[w.start+n-1] == '\n'
		}
		w.start += n
		switch {
		case err != nil:
			return err
		case end:
			w.start += len(endOfData)
			return nil
		case d.runaway():
			return replyTooLarge
		}
		if err := w.fill(w.dataDeadline()); err != nil {
			return replyCutShort
		}
	}
}

// copyBuffered gives what is in buf to d, in runs as long as transparency
// allows. It returns how many bytes it used, and whether the end of the data
// follows them. It leaves what may become a line end or the end of the data.
func (w *wire) copyBuffered(d *dataSink, begins bool) (used int, end bool, err error) {
	p := w.pending()
	run := 0 // beginning of what is not yet given to d
	for pos := 0; ; begins = true {
		if begins && pos < len(p) && p[pos] == '.' {
			if _, err := d.Write(p[run:pos]); err != nil {
				return pos, false, err
			}
			switch rest := p[pos:]; {
			case bytes.HasPrefix(rest, endOfData):
				return pos, true, nil
			case len(rest) < len(endOfData) && bytes.HasPrefix(endOfData, rest):
				return pos, false, nil
			}
			run = pos + 1
		}
		n := bytes.Index(p[pos:], lineEnd)
		if n < 0 {
			break
		}
		pos += n + len(lineEnd)
	}
	used = len(p)
	if used > run && p[used-1] == '\r' {
		used--
	}
	_, err = d.Write(p[run:used])
	return used, false, err
}
