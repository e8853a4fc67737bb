package inbound

import (
	"bytes"

	"github.com/postroom/postroom/smtp"
)

var (
	endOfData = []byte(".\r\n")
	dotLine   = []byte("\r\n.") // the end of a line, before one that begins with a dot
)

// readData reads the data after DATA up to CRLF.CRLF and removes dot-stuffing
// (RFC 5321 section 4.5.2). If it does not reach the end, the connection cannot
// be used any more and unread is set.
func (w *wire) readData(d *dataSink) error {
	if err := w.copyData(d); err != nil {
		w.unread = true
		return err
	}
	return d.finish()
}

// copyData copies lines from the connection to d until the end of the data.
func (w *wire) copyData(d *dataSink) error {
	w.pace.start()
	for begins := true; ; {
		n, end, err := w.copyBuffered(d, begins)
		if n > 0 {
			begins = bytes.HasSuffix(w.pending()[:n], smtp.CRLF) // copyBuffered does not split a CRLF
		}
		w.start += n
		w.inData = true
		switch {
		case err != nil:
			return err
		case end:
			w.start += len(endOfData)
			return nil
		case d.runaway():
			return replyTooLarge
		}
		if err := w.fillData(); err != nil {
			w.inData = false
			return cutShort(err)
		}
	}
}

// cutShort returns the reply to incomplete data.
func cutShort(err error) *smtp.Reply {
	if r := lastWords(err); r != nil {
		return r
	}
	return replyCutShort
}

// copyBuffered copies buffered data to d in runs, without stuffed dots. It
// returns how many bytes it used, and whether the end of the data follows. It
// leaves bytes that may be part of a line end or of the end of the data.
func (w *wire) copyBuffered(d *dataSink, begins bool) (used int, end bool, err error) {
	p := w.pending()
	run := 0 // start of the data not yet written to d
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
		n := bytes.Index(p[pos:], dotLine)
		if n < 0 {
			break
		}
		pos += n + len(smtp.CRLF)
	}
	used = len(p)
	if used > run && p[used-1] == '\r' {
		used--
	}
	_, err = d.Write(p[run:used])
	return used, false, err
}
