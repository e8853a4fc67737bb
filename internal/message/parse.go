package message

import (
	"io"
)

// Parse reads a mail. It does not fail on an odd mail; its error is
// ErrHeaderTooLarge or that of r. Where a limit is reached it stops reading,
// possibly before the end of r, and marks the message Truncated.
//
// Of a field that may come once the first counts: a mail with two From fields
// is from the first. To, Cc, Bcc and Reply-To fields that come twice are
// joined.
func Parse(r io.Reader, lim Limits) (*Message, error) {
	p := parser{w: newWalker(r, lim), lim: lim, msg: &Message{}}
	if err := p.w.readHeader(); err != nil {
		return nil, err
	}
	if p.w.truncated {
		return nil, ErrHeaderTooLarge
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
}

// readField takes one field of the header of the mail.
func (p *parser) readField(f field) {
	m := p.msg
	switch f.name[0] | 0x20 {
	case 'a':
		if m.AutoSubmitted == "" && f.is("auto-submitted") {
			m.AutoSubmitted = f.text()
		}
	case 'b':
		if f.is("bcc") {
			p.addresses(&m.Bcc, f)
		}
	case 'c':
		if f.is("cc") {
			p.addresses(&m.Cc, f)
		}
	case 'd':
		if m.Date.IsZero() && f.is("date") {
			m.Date = parseDate(f.unfolded())
		}
	case 'f':
		if m.From == nil && f.is("from") {
			m.From = firstAddress(f)
		}
	case 'i':
		if m.InReplyTo == nil && f.is("in-reply-to") {
			m.InReplyTo = messageIDs(f.unfolded())
		}
	case 'l':
		if m.ListID == "" && f.is("list-id") {
			m.ListID = f.text()
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
		} else if f.is("reply-to") {
			p.addresses(&m.ReplyTo, f)
		}
	case 's':
		if m.Subject == "" && f.is("subject") {
			m.Subject = f.text()
		}
	case 't':
		if f.is("to") {
			p.addresses(&m.To, f)
		}
	}
}

func (p *parser) addresses(list *[]Address, f field) {
	more, cut := parseAddressList(f.unfolded(), p.lim.Addresses-len(*list))
	*list = append(*list, more...)
	p.truncated = p.truncated || cut
}

// firstAddress returns the first address of a From field.
func firstAddress(f field) *Address {
	list, _ := parseAddressList(f.unfolded(), 1)
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}
