package mime

import (
	"bytes"
	"errors"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// readParts reads the leaf parts.
func (p *parser) readParts() error {
	var preamble strings.Builder
	p.w.preamble = func(b []byte) {
		if preamble.Len() <= p.lim.TextBytes { // addText truncates it
			preamble.Write(b)
		}
	}
	for {
		leaf, err := p.w.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := p.readPart(&leaf); err != nil {
			return err
		}
	}
	if p.w.parts == 0 {
		// No delimiter was found: the preamble is the text.
		p.addText(&p.text, plaintext.UnixLines(guessUTF8([]byte(preamble.String()))))
	}
	return nil
}

func (p *parser) readPart(leaf *leafPart) (err error) {
	kind, name := leaf.kind(), leaf.filename()
	size, shown := int64(0), leaf.isShown(kind, name)
	switch {
	case !shown && p.isCalendar(kind, name):
		size, err = p.readCalendar(leaf)
	case !shown:
		size, err = p.measure(leaf)
	case kind == "text/html":
		size, err = p.readText(&p.html, leaf)
	default:
		size, err = p.readText(&p.text, leaf)
	}
	if err != nil || shown && !leaf.isNamedFile(name) {
		return err
	}
	list := &p.msg.Attachments
	if leaf.isOtherForm(kind, name) {
		list = &p.otherForms
	}
	*list = append(*list, mail.Attachment{
		Part:        leaf.number,
		Filename:    name,
		ContentType: kind,
		ContentID:   leaf.contentID,
		Inline:      leaf.isInline(),
		Size:        size,
	})
	return nil
}

// markShown marks the attachments that the HTML shows by their Content-ID (RFC
// 2392) as inline, whatever their disposition.
func markShown(m *Message) {
	if !slices.ContainsFunc(m.Attachments, func(a mail.Attachment) bool { return a.ContentID != "" && !a.Inline }) {
		return
	}
	shown := contentIDsIn(m.HTML)
	for i := range m.Attachments {
		a := &m.Attachments[i]
		a.Inline = a.Inline || a.ContentID != "" && shown[a.ContentID]
	}
}

// contentIDsIn returns the Content-IDs of the "cid:" links in HTML.
func contentIDsIn(doc string) map[string]bool {
	ids := map[string]bool{}
	for {
		colon := strings.IndexByte(doc, ':')
		if colon < 0 {
			return ids
		}
		scheme := doc[max(0, colon-len("cid")):colon]
		if doc = doc[colon+1:]; !strings.EqualFold(scheme, "cid") {
			continue
		}
		id := plaintext.Truncate(doc, maxMessageID)
		if end := strings.IndexAny(id, "\"'<>() \t\r\n"); end >= 0 {
			id = id[:end]
		}
		ids[percentDecode(html.UnescapeString(id))] = true
	}
}

// readText decodes a text part and returns its size.
func (p *parser) readText(dst *textParts, leaf *leafPart) (size int64, err error) {
	room := max(0, p.lim.TextBytes-dst.size)
	decoder := newTransferDecoder(leaf.encoding)
	if p.scratch == nil {
		p.scratch = make([]byte, 0, min(p.w.lines.unread(), room)+1)
	}
	buf, full := p.scratch[:0], false
	keep := func(decoded []byte) {
		size += int64(len(decoded) - len(buf))
		if buf = decoded; len(buf) > room {
			buf, full = buf[:room], true
		}
	}
	err = p.w.body(func(piece []byte) { keep(decoder.decode(buf, piece)) })
	keep(decoder.finish(buf))
	if p.scratch = buf; err != nil {
		return 0, err
	}
	p.truncated = p.truncated || full
	charset := leaf.media.Raw("charset")
	if charset == "" && dst == &p.html {
		charset = metaCharset(buf)
	}
	if p.charset == "" && lookupCharset(charset).kind > charsetUTF8 {
		p.charset = charset
	}
	p.addText(dst, leaf.unflow(plaintext.UnixLines(ToUTF8(buf, charset))))
	return size, nil
}

// addText appends text with LF line endings, on a line of its own.
func (p *parser) addText(dst *textParts, s string) {
	if room := p.lim.TextBytes - dst.size - dst.gap(); len(s) > room {
		s = plaintext.Truncate(s, max(room, 0))
		p.truncated = true
	}
	dst.add(s)
}

// textParts joins the parts of a text. Most messages have one.
type textParts struct {
	parts []string
	size  int
}

func (t *textParts) add(s string) {
	if s == "" {
		return
	}
	if t.gap() > 0 {
		t.parts = append(t.parts, "\n")
		t.size++
	}
	t.parts = append(t.parts, s)
	t.size += len(s)
}

// gap returns the length of the line ending needed before the next part.
func (t *textParts) gap() int {
	if n := len(t.parts); n > 0 && !strings.HasSuffix(t.parts[n-1], "\n") {
		return 1
	}
	return 0
}

// String implements fmt.Stringer.
func (t *textParts) String() string { return strings.Join(t.parts, "") }

// measure skips a part and returns the decoded size of its content.
func (p *parser) measure(leaf *leafPart) (size int64, err error) {
	decoder := newTransferDecoder(leaf.encoding)
	err = p.w.body(func(piece []byte) {
		p.scratch = decoder.decode(p.scratch[:0], piece)
		size += int64(len(p.scratch))
	})
	return size + int64(len(decoder.finish(p.scratch[:0]))), err
}

// maxCalendar limits the bytes of an invitation that are read.
const maxCalendar = 1 << 20

// isCalendar reports whether a part may be the invitation of the message.
func (p *parser) isCalendar(kind, name string) bool {
	if kind == "text/calendar" {
		return !p.calendar
	}
	return p.msg.Calendar == "" && (kind == "application/ics" || strings.HasSuffix(strings.ToLower(name), ".ics"))
}

// readCalendar decodes an invitation and returns its size.
func (p *parser) readCalendar(leaf *leafPart) (size int64, err error) {
	var buf []byte
	keep := func(decoded []byte) {
		size += int64(len(decoded))
		buf = append(buf, decoded[:min(len(decoded), maxCalendar-len(buf))]...)
	}
	decoder := newTransferDecoder(leaf.encoding)
	err = p.w.body(func(piece []byte) {
		p.scratch = decoder.decode(p.scratch[:0], piece)
		keep(p.scratch)
	})
	keep(decoder.finish(p.scratch[:0]))
	p.truncated = p.truncated || size > maxCalendar
	p.calendar = p.calendar || leaf.kind() == "text/calendar"
	p.msg.Calendar = plaintext.UnixLines(ToUTF8(unfold(buf), leaf.media.Raw("charset")))
	return size, err
}

// unfold joins folded lines (RFC 5545 section 3.1). A fold may be within a character, so
// this comes before decoding.
func unfold(b []byte) []byte {
	out := b[:0]
	for i := 0; i < len(b); i++ {
		if b[i] == '\n' && i+1 < len(b) && (b[i+1] == ' ' || b[i+1] == '\t') {
			out = bytes.TrimSuffix(out, []byte("\r"))
			i++
			continue
		}
		out = append(out, b[i])
	}
	return out
}
