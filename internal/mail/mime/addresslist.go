package mime

import (
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// MaxAddressBytes is longer than any address that mail can be sent to; what
// exceeds it is not an address.
const MaxAddressBytes = 320

// ParseAddressList reads the addresses of a header field (RFC 5322 section
// 3.4), unfolded, at most limit of them. Groups are flattened. It is tolerant: whatever
// stands before "<" is the name, a comment is the name where there is none,
// quotes and brackets that do not end are taken as text. more says that there
// are further addresses.
func ParseAddressList(s string, limit int) (list []mail.Address, more bool) {
	sc := addressScanner{s: s}
	for {
		var item addressItem
		if !sc.next(&item) {
			return list, false
		}
		a, ok := item.address()
		if !ok {
			continue
		}
		if len(list) == limit {
			return list, true
		}
		list = append(list, a)
	}
}

// addressScanner cuts an address list at its commas.
type addressScanner struct {
	s       string
	pos     int
	done    bool
	noQuote bool // no closing quote follows
	noParen bool // no closing parenthesis follows
	noAngle bool // no closing angle bracket follows
}

// An addressItem is one mailbox as written.
type addressItem struct {
	phrase  strings.Builder // what is neither comment nor in angle brackets
	name    string          // what stood before a bracket that does not end
	route   string          // what is in the angle brackets
	angle   bool
	comment string
}

// next reads the next item; false at the end. It reads every character
// once or twice: what does not end is remembered, not searched for again.
func (sc *addressScanner) next(item *addressItem) bool {
	if sc.done {
		return false
	}
	start, seenAt := sc.pos, false
	for sc.pos < len(sc.s) {
		i := sc.pos
		sc.pos++
		switch sc.s[i] {
		case '@':
			seenAt = true
		case '"':
			sc.pos = sc.skipQuoted(i)
		case '=': // in an encoded word nothing has a meaning
			sc.pos = i + max(1, encodedWordLen(sc.s[i:]))
		case '(', '<':
			switch end := sc.skipBracket(i, item); {
			case end > 0:
				item.phrase.WriteString(sc.s[start:i])
				start, sc.pos = end, end
			case sc.s[i] == '<' && !item.angle: // a bracket that does not end
				item.phrase.WriteString(sc.s[start:i])
				item.name = item.phrase.String()
				item.phrase.Reset()
				start = i + 1
			}
		case ':':
			if !item.angle && !seenAt { // what stood before is a group's name
				item.phrase.Reset()
				start = i + 1
			}
		case ',', ';':
			item.phrase.WriteString(sc.s[start:i])
			return true
		}
	}
	sc.done = true
	item.phrase.WriteString(sc.s[start:])
	return true
}

// skipBracket takes the comment or the angle brackets at i and returns the
// position after it, 0 when it does not end.
func (sc *addressScanner) skipBracket(i int, item *addressItem) int {
	if sc.s[i] == '(' {
		end := sc.commentEnd(i)
		if end > 0 {
			item.comment = sc.s[i+1 : end-1]
		}
		return end
	}
	end := sc.angleEnd(i)
	if end > 0 && !item.angle {
		item.angle, item.route = true, sc.s[i+1:end-1]
	}
	return end
}

// skipQuoted returns the position after the quoted string at i.
func (sc *addressScanner) skipQuoted(i int) int {
	if sc.noQuote {
		return i + 1
	}
	for j := i + 1; j < len(sc.s); j++ {
		switch sc.s[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	sc.noQuote = true
	return i + 1
}

// commentEnd returns the position after the comment at i, which may hold
// others.
func (sc *addressScanner) commentEnd(i int) int {
	if sc.noParen {
		return 0
	}
	depth := 0
	for j := i; j < len(sc.s); j++ {
		switch sc.s[j] {
		case '\\':
			j++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	sc.noParen = true
	return 0
}

// angleEnd returns the position after the angle brackets at i.
func (sc *addressScanner) angleEnd(i int) int {
	if sc.noAngle {
		return 0
	}
	quoted := false
	for j := i + 1; j < len(sc.s); j++ {
		switch c := sc.s[j]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			j++
		case c == '>' && !quoted:
			return j + 1
		case c == '<' && !quoted:
			return 0
		}
	}
	sc.noAngle = true
	return 0
}
