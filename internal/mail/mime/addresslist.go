package mime

import (
	"strings"

	"github.com/postroom/postroom/internal/mail"
)

// MaxAddressBytes is the maximum length of an address in bytes. It exceeds the
// limit of SMTP.
const MaxAddressBytes = 320

// ParseAddressList returns at most limit addresses of an unfolded header field
// (RFC 5322 section 3.4). It flattens groups. It is lenient: text before "<" is
// the name, a comment is the name if there is no other, and unclosed quotes and
// brackets are text. more reports that there are further addresses.
func ParseAddressList(s string, limit int) (list []mail.Address, more bool) {
	sc := addressScanner{s: s}
	before := "" // a name up to its comma, as in "Doe, Ann <ann@example.com>"
	for {
		var item addressItem
		if !sc.next(&item) {
			return list, false
		}
		a, ok := item.address()
		if !ok {
			before = item.surname()
			continue
		}
		if before != "" && item.angle && a.Name != "" {
			a.Name = before + ", " + a.Name
		}
		before = ""
		if len(list) == limit {
			return list, true
		}
		list = append(list, a)
	}
}

// addressScanner splits an address list at its commas.
type addressScanner struct {
	s       string
	pos     int
	done    bool
	noQuote bool // no closing quote follows
	noParen bool // no closing parenthesis follows
	noAngle bool // no closing angle bracket follows
	noGroup bool // no semicolon follows
}

// An addressItem is one mailbox as written.
type addressItem struct {
	phrase  strings.Builder // text outside of comments and angle brackets
	name    string          // text before an unclosed bracket
	group   int             // length of the text up to a colon of an unclosed group
	route   string          // text in angle brackets
	angle   bool
	comment string
}

// next reads the next item, or returns false at the end. It records which
// closing marks are missing instead of searching for them again, so it reads
// every character at most twice.
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
		case '=': // skip an encoded word
			sc.pos = i + max(1, encodedWordLen(sc.s[i:]))
		case '(', '<':
			switch end := sc.skipBracket(i, item); {
			case end > 0:
				item.phrase.WriteString(sc.s[start:i])
				start, sc.pos = end, end
			case sc.s[i] == '<' && !item.angle: // an unclosed bracket
				item.phrase.WriteString(sc.s[start:i])
				item.name = item.phrase.String()
				item.phrase.Reset()
				start = i + 1
			}
		case ':':
			if item.angle || seenAt {
				continue
			}
			if sc.noGroup = sc.noGroup || strings.IndexByte(sc.s[i:], ';') < 0; sc.noGroup { // perhaps a name with a colon
				item.phrase.WriteString(sc.s[start:sc.pos])
				item.group = item.phrase.Len()
			} else { // the text before is a group name
				item.phrase.Reset()
			}
			start = sc.pos
		case ',', ';':
			item.phrase.WriteString(sc.s[start:i])
			return true
		}
	}
	sc.done = true
	item.phrase.WriteString(sc.s[start:])
	return true
}

// skipBracket reads the comment or angle brackets at i. It returns the position
// after them, or 0 if they are not closed.
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

// commentEnd returns the position after the comment at i, which may contain
// others, or 0 if it is not closed.
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

// angleEnd returns the position after the angle brackets at i, or 0 if they are
// not closed.
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
