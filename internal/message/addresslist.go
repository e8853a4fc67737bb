package message

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// maxAddressBytes is longer than any address that mail can be sent to; what
// exceeds it is no address.
const maxAddressBytes = 320

// parseAddressList reads the addresses of a header field (RFC 5322 section
// 3.4), unfolded, at most limit of them. Groups are flattened. It is tolerant: whatever
// stands before "<" is the name, a comment is the name where there is none,
// quotes and brackets that do not end are taken as text. more says that there
// are further addresses.
func parseAddressList(s string, limit int) (list []Address, more bool) {
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

// next reads the next item; false at the end. It looks at every character
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

// address returns what an item stands for; false when that is no mailbox.
func (it *addressItem) address() (Address, bool) {
	name, email := it.phrase.String(), it.route
	if !it.angle {
		name, email = cmp.Or(it.name, it.comment), name
	}
	a := Address{Name: cleanName(name), Email: cleanEmail(email)}
	if a.Name == "" && it.angle {
		a.Name = cleanName(it.comment)
	}
	if a.Email == "" || len(a.Email) > maxAddressBytes {
		return Address{}, false
	}
	if !it.angle && strings.IndexByte(a.Email, '@') < 0 {
		return Address{}, false
	}
	return a, true
}

// cleanName returns a display name as people read it.
func cleanName(s string) string {
	s = strings.TrimSpace(s)
	if strings.IndexByte(s, '"') >= 0 {
		s = unquote(s)
	}
	return foldSpace(oneLine(decodeWords(s)))
}

// unquote removes quotes, and the backslashes inside of them.
func unquote(s string) string {
	out := make([]byte, 0, len(s))
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
			continue
		case s[i] == '\\' && quoted && i+1 < len(s):
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

// cleanEmail returns an address without the spaces, comments and route that
// may stand in it, the domain in lower case.
func cleanEmail(s string) string {
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		s = guessUTF8([]byte(s))
	}
	if strings.HasPrefix(s, "@") { // a source route, RFC 5321 appendix C
		if colon := strings.IndexByte(s, ':'); colon >= 0 {
			s = s[colon+1:]
		}
	}
	s = strings.TrimPrefix(strings.TrimSpace(s), "mailto:")
	if strings.IndexByte(s, '"') < 0 {
		s = strings.Map(func(r rune) rune {
			if r == ' ' || breaksLine(r) {
				return -1
			}
			return r
		}, s)
	}
	s = strings.Trim(oneLine(s), "<>")
	if len(s) > 2 && s[0] == '\'' && s[len(s)-1] == '\'' { // some programs quote it so
		s = s[1 : len(s)-1]
	}
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	return s[:at] + strings.ToLower(s[at:])
}
