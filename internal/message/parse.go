package message

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Parse reads a mail. It does not fail on an odd mail; its error is
// ErrHeaderTooLarge or that of r. Where a limit is reached it stops reading,
// possibly before the end of r, and marks the message Truncated.
//
// Of a field that may come once the first counts: a mail with two From fields
// is from the first that has an address. To, Cc, Bcc and Reply-To fields that come twice are
// joined.
func Parse(r io.Reader, lim Limits) (*Message, error) {
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
	fields(p.w.header, p.readField)
	if err := p.readParts(); err != nil {
		return nil, err
	}
	p.msg.Text, p.msg.HTML = p.text.String(), p.html.String()
	p.msg.Truncated = p.truncated || p.w.truncated
	return p.msg, nil
}

// parser builds a Message.
type parser struct {
	w         *walker
	lim       Limits
	msg       *Message
	text      textParts
	html      textParts
	truncated bool
	scratch   []byte // decoded bytes of a part; reused
	hint      string // charset of header fields that do not name theirs
}

// headerCharset returns the charset of the text of the mail, which its header
// is most likely written in too.
func headerCharset(header []byte) string {
	part := readPartHeader(header)
	return part.media.raw("charset")
}

// readField takes one field of the header of the mail.
func (p *parser) readField(f field) {
	if p.lim.Budget.Spent() {
		p.truncated = true
		return
	}
	written := f
	if p.hint != "" && !utf8.Valid(f.value) {
		f.value = []byte(toUTF8(f.value, p.hint))
	}
	m, letter := p.msg, f.name[0]|0x20
	switch {
	case letter == 'b' && f.is("bcc"):
		p.addresses(&m.Bcc, f)
	case letter == 'c' && f.is("cc"):
		p.addresses(&m.Cc, f)
	case letter == 't' && f.is("to"):
		p.addresses(&m.To, f)
	case letter == 'r' && f.is("reply-to"):
		p.addresses(&m.ReplyTo, f)
	case letter == 'f' && f.is("from"):
		if m.From == nil || m.From.Email == "" {
			if a := hintedSender(f, written); m.From == nil || a != nil && a.Email != "" {
				m.From = a
			}
		}
	default:
		p.readFirst(f)
	}
}

// readFirst takes a field of which the first counts that says something.
func (p *parser) readFirst(f field) {
	m := p.msg
	switch f.name[0] | 0x20 {
	case 'a':
		if m.AutoSubmitted == "" && f.is("auto-submitted") {
			m.AutoSubmitted = f.text()
		}
	case 'd':
		if m.Date.IsZero() && f.is("date") {
			m.Date = parseDate(f.unfolded())
		}
	case 'i':
		if m.InReplyTo == nil && f.is("in-reply-to") {
			m.InReplyTo = messageIDs(f.unfolded())
		}
	case 'l':
		if len(f.name) > len("list-") && strings.EqualFold(string(f.name[:len("list-")]), "list-") {
			m.HasListField = true
		}
	case 'm':
		if m.HeaderID == "" && f.is("message-id") {
			if ids := messageIDs(f.unfolded()); len(ids) > 0 {
				m.HeaderID = ids[0]
			}
		}
	case 'p':
		if m.Precedence == "" && f.is("precedence") {
			m.Precedence = f.text()
		}
	case 'r':
		if m.References == nil && f.is("references") {
			m.References = messageIDs(f.unfolded())
		}
	case 's':
		if m.Subject == "" && f.is("subject") {
			m.Subject = f.text()
		}
	}
}

func (p *parser) addresses(list *[]Address, f field) {
	more, cut := parseAddressList(f.unfolded(), p.lim.Addresses-len(*list))
	*list = append(*list, more...)
	p.truncated = p.truncated || cut
}

// sender returns who a From field names: its first address, or where it has
// none, a name without one.
func sender(f field) *Address {
	if a := firstAddress(f); a != nil {
		return a
	}
	name := cleanName(f.unfolded())
	if name == "" || strings.ContainsAny(name, "<>:;@") {
		return nil
	}
	return &Address{Name: name}
}

// hintedSender returns who a From field names, with the name in the charset of
// the text. Its address stays as it is without that: it is what the checks of
// the sender are about, which must not be of another than the one shown.
func hintedSender(hinted, written field) *Address {
	a, as := sender(written), sender(hinted)
	if a == nil || as == nil || a.Email != as.Email {
		return a
	}
	return as
}

// firstAddress returns the first address of a From field.
func firstAddress(f field) *Address {
	list, _ := parseAddressList(f.unfolded(), 1)
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}
