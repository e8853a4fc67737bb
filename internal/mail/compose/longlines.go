package compose

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/quotedprintable"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
)

// shorten prepares the parts of the body whose lines are longer than a mail system
// may send (RFC 5322 section 2.1.1): they are written in another transfer encoding.
// A line that this does not shorten is a *FieldError. It leaves the body somewhere.
func (r *Raw) shorten() error {
	if _, err := r.body.Seek(r.at, io.SeekStart); err != nil {
		return fmt.Errorf("read the message: %w", err)
	}
	if _, err := io.Copy(&lineChecker{}, r.body); err == nil {
		return nil
	}
	whole, err := r.Reader()
	if err == nil {
		r.long, err = mime.LongParts(whole, mail.DefaultLimits(), maxLine)
	}
	if err == nil {
		_, err = r.WriteTo(&lineChecker{})
	}
	return err
}

// lineChecker is a writer that refuses lines over maxLine.
type lineChecker struct{ line int }

var errLongLine = &FieldError{"message", fmt.Sprintf("has a line of more than %d bytes, where it cannot be encoded again: in a header, in a part that is signed or a message, or outside of the parts", maxLine)}

func (c *lineChecker) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		if c.line += end; c.line > maxLine+len("\r") || c.line > maxLine && end > 0 && rest[end-1] != '\r' {
			return 0, errLongLine
		}
		if end == len(rest) {
			break
		}
		c.line, rest = 0, rest[end+1:]
	}
	return len(p), nil
}

// writeShort writes a message with its long parts encoded again.
func (r *Raw) writeShort(w io.Writer, message io.Reader) error {
	at := int64(0)
	in := bufio.NewReader(message)
	for _, p := range r.long {
		if _, err := io.CopyN(w, in, p.Header-at); err != nil {
			return fmt.Errorf("read the message: %w", err)
		}
		header := make([]byte, p.Body-p.Header)
		if _, err := io.ReadFull(in, header); err != nil {
			return fmt.Errorf("read the message: %w", err)
		}
		if err := writeAgain(w, &p, header, io.LimitReader(in, p.End-p.Body)); err != nil {
			return err
		}
		at = p.End
	}
	_, err := io.Copy(w, in)
	return err
}

// writeAgain writes a part in quoted-printable if it is text, else in base64.
func writeAgain(w io.Writer, p *mime.LongPart, header []byte, body io.Reader) error {
	m := mailWriter{w: wireWriter{bufio.NewWriter(w)}}
	encoding, isMIME := "base64", p.Header > 0
	if p.IsText && p.Encoding != "base64" {
		encoding = "quoted-printable"
	}
	mime.Fields(header, func(f mime.Field) {
		isMIME = isMIME || f.Is("mime-version")
		if !f.Is("content-transfer-encoding") {
			m.w.put(string(fold(f.Raw)))
		}
	})
	if !isMIME {
		m.w.put("MIME-Version: 1.0\r\n")
	}
	m.w.put("Content-Transfer-Encoding: ", encoding, "\r\n\r\n")
	content := mime.DecodeBody(body, p.Encoding)
	if encoding == "base64" {
		m.err = m.base64(content)
		if p.Header == 0 { // the whole message: its last line ends too
			m.w.put("\r\n")
		}
	} else {
		qp := quotedprintable.NewWriter(m.w)
		_, m.err = io.Copy(qp, content)
		_ = qp.Close() // the buffered writer reports its error from Flush
	}
	if err := m.w.Flush(); m.err == nil {
		m.err = err
	}
	return m.err
}

// fold folds the lines of a field that are over maxLine at white space. It leaves
// lines that have none.
func fold(field []byte) []byte {
	if len(field) <= maxLine {
		return field
	}
	var out []byte
	for line := range bytes.Lines(field) {
		for len(line) > maxLine+len("\r\n") {
			at := bytes.LastIndexAny(line[:maxLine], " \t")
			if len(bytes.TrimSpace(line[:max(at, 0)])) == 0 || len(bytes.TrimSpace(line[at:])) == 0 {
				break
			}
			out = append(append(out, line[:at]...), "\r\n"...)
			line = line[at:]
		}
		out = append(out, line...)
	}
	return out
}
