package mime

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Parse reads a message. It does not fail on a malformed message; its error is
// ErrHeaderTooLarge or that of r. If a limit is reached, it stops reading,
// possibly before the end of r, and sets Truncated.
//
// If a single field occurs several times, the first one counts. For From, the
// first one with an address counts. Repeated To, Cc, Bcc and Reply-To fields
// are joined.
func Parse(r io.Reader, lim mail.Limits) (*Message, error) {
	p := parser{w: newWalker(r, lim), lim: lim, msg: &Message{}}
	if err := p.w.readHeader(); err != nil {
		return nil, err
	}
	if p.w.truncated {
		return nil, ErrHeaderTooLarge
	}
	if !utf8.Valid(p.w.header) {
		p.hint = headerCharset(p.w.header)
	}
	Fields(p.w.header, p.readField)
	var undecoded []byte
	if p.hint == "" && !utf8.Valid(p.w.header) {
		undecoded = bytes.Clone(p.w.header)
	}
	if err := p.readParts(); err != nil {
		return nil, err
	}
	if p.charset != "" && undecoded != nil {
		p.rereadHeader(undecoded)
	}
	p.msg.Text, p.msg.HTML = plaintext.Visible(p.text.String()), p.html.String()
	if p.msg.Text == "" && p.msg.HTML == "" {
		p.msg.Attachments = append(p.msg.Attachments, p.otherForms...)
	}
	markShown(p.msg)
	p.msg.Truncated = p.truncated || p.w.truncated
	return p.msg, nil
}

// parser builds a Message.
type parser struct {
	w         *walker
	lim       mail.Limits
	msg       *Message
	text      textParts
	html      textParts
	truncated bool
	scratch   []byte // decoded bytes of a part; reused
	hint      string // charset of header fields without one
	charset   string // of the first text part that has one

	otherForms []mail.Attachment // what isOtherForm
	calendar   bool              // msg.Calendar is from a part of type text/calendar
}

// headerCharset returns the charset of the message text, which the header
// probably uses too.
func headerCharset(header []byte) string {
	part := readPartHeader(header)
	return part.media.Raw("charset")
}

// rereadHeader reads a header with raw 8-bit characters again when the charset of
// the text is known, which the header itself does not name.
func (p *parser) rereadHeader(header []byte) {
	again := parser{lim: p.lim, msg: &Message{}, hint: p.charset}
	Fields(header, again.readField)
	p.msg.Addresses, p.msg.Subject = again.msg.Addresses, again.msg.Subject
	p.truncated = p.truncated || again.truncated
}

// readField reads one field of the message header.
func (p *parser) readField(f Field) {
	if p.lim.Budget.Spent() {
		p.truncated = true
		return
	}
	written := f
	if p.hint != "" && !utf8.Valid(f.value) {
		f.value = []byte(ToUTF8(f.value, p.hint))
	}
	m, letter := p.msg, f.Name[0]|0x20
	switch {
	case letter == 'b' && f.Is("bcc"):
		p.addresses(&m.Bcc, f)
	case letter == 'c' && f.Is("cc"):
		p.addresses(&m.Cc, f)
	case letter == 't' && f.Is("to"):
		p.addresses(&m.To, f)
	case letter == 'r' && f.Is("reply-to"):
		p.addresses(&m.ReplyTo, f)
	case letter == 'f' && f.Is("from"):
		if m.From == nil || m.From.Email == "" {
			if a := hintedSender(f, written); m.From == nil || a != nil && a.Email != "" {
				m.From = a
			}
		}
	default:
		p.readFirst(f)
	}
}

// readFirst reads a field whose first non-empty occurrence counts.
func (p *parser) readFirst(f Field) {
	m := p.msg
	switch f.Name[0] | 0x20 {
	case 'a':
		if m.AutoSubmitted == "" && f.Is("auto-submitted") {
			m.AutoSubmitted = f.Text()
		}
	case 'd':
		if m.Date.IsZero() && f.Is("date") {
			m.Date = parseDate(f.Unfolded())
		}
	case 'i':
		if m.InReplyTo == nil && f.Is("in-reply-to") {
			m.InReplyTo = MessageIDs(f.Unfolded())
		}
	case 'l':
		if len(f.Name) > len("list-") && strings.EqualFold(string(f.Name[:len("list-")]), "list-") {
			m.HasListField = true
		}
	case 'm':
		if m.HeaderID == "" && f.Is("message-id") {
			if ids := MessageIDs(f.Unfolded()); len(ids) > 0 {
				m.HeaderID = ids[0]
			}
		}
	case 'p':
		if m.Precedence == "" && f.Is("precedence") {
			m.Precedence = f.Text()
		}
	case 'r':
		if m.References == nil && f.Is("references") {
			m.References = MessageIDs(f.Unfolded())
		}
	case 's':
		if m.Subject == "" && f.Is("subject") {
			m.Subject = plaintext.Visible(f.Text())
		}
	case 'x':
		m.AutoReply = m.AutoReply || f.IsAutoReply()
	}
}

func (p *parser) addresses(list *[]mail.Address, f Field) {
	more, cut := ParseAddressList(f.Unfolded(), p.lim.Addresses-len(*list))
	*list = append(*list, more...)
	p.truncated = p.truncated || cut
}

// sender returns the first address of a From field, else its name, else nil.
func sender(f Field) *mail.Address {
	if a := firstAddress(f); a != nil {
		return a
	}
	name := cleanName(f.Unfolded())
	if name == "" || strings.ContainsAny(name, "<>:;@") {
		return nil
	}
	return &mail.Address{Name: name}
}

// hintedSender is sender with the name decoded in the charset of the text. The
// address must be the same without that charset, because sender authentication
// uses the undecoded field.
func hintedSender(hinted, written Field) *mail.Address {
	a, as := sender(written), sender(hinted)
	if a == nil || as == nil || a.Email != as.Email {
		return a
	}
	return as
}

// firstAddress returns the first address of a From field, or nil.
func firstAddress(f Field) *mail.Address {
	list, _ := ParseAddressList(f.Unfolded(), 1)
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}
