package compose

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxLine is the maximum length of a line without its CRLF (RFC 5322 section
// 2.1.1).
const maxLine = 998

// text writes a text part. With last, it also ends the last line.
func (m *mailWriter) text(subtype, s string, last bool) {
	s = crlfLines(s)
	if last && !strings.HasSuffix(s, "\r\n") {
		s += "\r\n"
	}
	charset, encoding := "utf-8", textEncoding(s)
	if plaintext.IsASCII(s) {
		charset = "us-ascii"
	}
	m.w.put("Content-Type: text/", subtype, "; charset=", charset, "\r\n")
	m.w.put("Content-Transfer-Encoding: ", encoding, "\r\n\r\n")
	switch encoding {
	case "7bit":
		m.w.put(s)
	case "quoted-printable":
		qp := quotedprintable.NewWriter(m.w)
		_, _ = io.WriteString(qp, s)
		_ = qp.Close()
	default:
		_ = m.base64(strings.NewReader(s))
		if last {
			m.w.put("\r\n")
		}
	}
}

// crlfLines returns s with CRLF line endings.
func crlfLines(s string) string {
	return strings.ReplaceAll(plaintext.UnixLines(s), "\n", "\r\n")
}

// textEncoding returns the transfer encoding for s: 7bit if mail systems do not
// change s, base64 if most of it needs quoting, else quoted-printable.
func textEncoding(s string) string {
	odd, plain := 0, true
	for line := range strings.SplitSeq(s, "\r\n") {
		if len(line) > maxLine || strings.Contains(line, "=_") {
			plain = false
		}
		for i := range len(line) {
			if c := line[i]; c >= utf8.RuneSelf || c < ' ' && c != '\t' || c == 0x7f {
				odd++
			}
		}
	}
	switch {
	case odd == 0 && plain:
		return "7bit"
	case odd > len(s)/3:
		return "base64"
	}
	return "quoted-printable"
}

// isCalendar reports whether an attachment is an invitation or an answer to one. Calendars
// find it only as an alternative to the text (RFC 6047 section 2.4).
func (a *Attachment) isCalendar() bool {
	kind, params, err := mime.ParseMediaType(a.ContentType)
	return err == nil && kind == "text/calendar" && params["method"] != ""
}

// file writes an attachment. Without a disposition it is an alternative to the text.
func (m *mailWriter) file(i int, disposition string) {
	a := &m.out.Attachments[i]
	h := headerWriter{w: m.w}
	contentType := fileType(a.ContentType)
	if disposition == "" {
		kind, params, _ := mime.ParseMediaType(a.ContentType) // isCalendar has read it
		params["name"] = a.Filename
		contentType = mime.FormatMediaType(kind, params)
	}
	h.field("Content-Type", contentType)
	h.field("Content-Transfer-Encoding", "base64")
	if disposition != "" {
		h.field("Content-Disposition", disposition, filenameParams(a.Filename)...)
	}
	if a.ContentID != "" {
		h.field("Content-ID", "<"+a.ContentID+">")
	}
	m.w.put("\r\n")
	if err := m.fileContent(a); err != nil && m.err == nil {
		m.err = fmt.Errorf("attachment %d: %w", i, err)
	}
}

func (m *mailWriter) fileContent(a *Attachment) error {
	if a.Open == nil {
		return m.base64(bytes.NewReader(a.Content))
	}
	r, err := a.Open()
	if err != nil {
		return err
	}
	return errors.Join(m.base64(r), r.Close())
}

// lineBytes is the number of bytes in a base64 line of 76 characters, and
// linesAtOnce the number of lines per write.
const (
	lineBytes   = 57
	linesAtOnce = 64
)

// base64 writes r in lines of 76 characters, without a line ending after the
// last.
func (m *mailWriter) base64(r io.Reader) error {
	var raw [linesAtOnce * lineBytes]byte
	lines := make([]byte, 0, linesAtOnce*(76+len("\r\n")))
	for first := true; ; {
		n, err := io.ReadFull(r, raw[:])
		lines = lines[:0]
		for line := range slices.Chunk(raw[:n], lineBytes) {
			if !first {
				lines = append(lines, "\r\n"...)
			}
			first = false
			lines = base64.StdEncoding.AppendEncode(lines, line)
		}
		_, _ = m.w.Write(lines)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fileType returns the media type of an attachment. Messages and multiparts
// become application/octet-stream, because they must not be encoded (RFC 2046
// section 5.2.1).
func fileType(s string) string {
	kind, params, err := mime.ParseMediaType(s)
	if err != nil || s == "" || strings.HasPrefix(kind, "message/") || strings.HasPrefix(kind, "multipart/") {
		return "application/octet-stream"
	}
	return mime.FormatMediaType(kind, params)
}

// filenameParams returns the filename parameters: a quoted string, or the form
// of RFC 2231, split if it is long.
func filenameParams(name string) []string {
	const piece = 60
	if name == "" {
		return nil
	}
	if plaintext.IsASCII(name) && len(name) <= piece && !strings.Contains(name, "=?") {
		return []string{`filename="` + quoteEscaper.Replace(name) + `"`}
	}
	coded := percentEncode(name)
	if len(coded) <= piece {
		return []string{"filename*=utf-8''" + coded}
	}
	var params []string
	for i := 0; coded != ""; i++ {
		end := min(piece, len(coded))
		if at := strings.LastIndexByte(coded[:end], '%'); at > end-3 && end < len(coded) {
			end = at // not within an escape
		}
		value := coded[:end]
		if i == 0 {
			value = "utf-8''" + value
		}
		params = append(params, "filename*"+strconv.Itoa(i)+"*="+value)
		coded = coded[end:]
	}
	return params
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// percentEncode escapes all but the attr-chars of RFC 5987.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plaintext.IsAlnum(c) || strings.IndexByte("!#$&+-.^_`|~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
