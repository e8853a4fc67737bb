package message

import (
	"bytes"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A field is one header field. Its value is as written, with line breaks and
// without the space after the colon.
type field struct {
	name  []byte
	value []byte
}

// fields calls yield for each field of a header block. Lines that are neither
// a field nor the continuation of one are dropped.
func fields(block []byte, yield func(field)) {
	for len(block) > 0 {
		end := fieldEnd(block)
		line := block[:end]
		block = block[end:]
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			continue
		}
		name := bytes.TrimRight(line[:colon], " \t")
		if isFieldName(name) {
			yield(field{name: name, value: bytes.TrimSpace(line[colon+1:])})
		}
	}
}

// fieldEnd returns the length of the first field of block with the lines
// that continue it.
func fieldEnd(block []byte) int {
	end := 0
	for {
		n := bytes.IndexByte(block[end:], '\n')
		if n < 0 {
			return len(block)
		}
		end += n + 1
		if end == len(block) || block[end] != ' ' && block[end] != '\t' {
			return end
		}
	}
}

// isFieldName reports whether name is one of RFC 5322 section 3.6.8.
func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return len(name) > 0
}

// isHeaderLine reports whether a line can belong to a header: it has a field
// name, or continues a field.
func isHeaderLine(line []byte) bool {
	if line[0] == ' ' || line[0] == '\t' {
		return true
	}
	colon := bytes.IndexByte(line, ':')
	return colon > 0 && isFieldName(bytes.TrimRight(line[:colon], " \t"))
}

// is reports whether the field has a name, which is given in lower case.
func (f field) is(name string) bool {
	if len(f.name) != len(name) {
		return false
	}
	for i, c := range f.name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// unfolded returns the value on one line (RFC 5322 section 2.2.3).
func (f field) unfolded() string {
	if bytes.IndexByte(f.value, '\n') < 0 && bytes.IndexByte(f.value, '\r') < 0 {
		return string(f.value)
	}
	out := make([]byte, 0, len(f.value))
	for i, c := range f.value {
		switch {
		case c == '\r' || c == '\n':
		case c == '\t' && i > 0 && f.value[i-1] == '\n':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// text returns the value as text to read: unfolded, encoded words decoded,
// on one line.
func (f field) text() string {
	return oneLine(decodeWords(f.unfolded()))
}

// oneLine replaces what cannot stand in a header line, control characters and
// Unicode's own line breaks, by spaces.
func oneLine(s string) string {
	clean := strings.IndexFunc(s, breaksLine) < 0
	if !clean {
		s = strings.Map(func(r rune) rune {
			if breaksLine(r) {
				return ' '
			}
			return r
		}, s)
	}
	return strings.TrimSpace(s)
}

// breaksLine reports whether r is a control character or a line separator.
func breaksLine(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// parseDate reads a Date field, in the zone UTC. It returns the zero time for
// one that cannot be read.
func parseDate(s string) time.Time {
	t, err := time.Parse("Mon, 2 Jan 2006 15:04:05 -0700", s) // nearly all
	if err != nil {
		t, err = mail.ParseDate(s)
	}
	if err != nil {
		t, err = parseOddDate(s)
	}
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

// parseOddDate reads dates that are not of RFC 5322 but met in mail.
func parseOddDate(s string) (t time.Time, err error) {
	s, _, _ = strings.Cut(s, " (")
	s = strings.Join(strings.Fields(s), " ")
	s = strings.Replace(s, ",", "", 1)
	for _, layout := range []string{
		"Mon 2 Jan 2006 15:04:05 -0700",
		"Mon 2 Jan 2006 15:04:05 MST",
		"Mon 2 Jan 2006 15:04:05",
		"2 Jan 2006 15:04:05",
		time.ANSIC,
		time.UnixDate,
		"Mon Jan 2 15:04:05 2006 -0700",
		time.RFC3339,
		"2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05",
	} {
		if t, err = time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return t, err
}

const (
	maxMessageID  = 900 // bytes; a longer one fits no header line
	maxReferences = 100 // of one field: the newest, and the oldest
	maxRoots      = 10  // how many the oldest are
)

// messageIDs returns the message identifiers of a field (RFC 5322 section
// 3.6.4) with their angle brackets. What is not printable ASCII is no
// identifier, so that each can be written into a reply.
func messageIDs(s string) []string {
	var ids []string
	for rest := s; ; {
		open := strings.IndexByte(rest, '<')
		if open < 0 {
			break
		}
		rest = rest[open:]
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			break
		}
		if id := rest[:end+1]; validMessageID(id) {
			ids = append(ids, id)
			if len(ids) == 2*maxReferences {
				ids = newestAndOldest(ids)
			}
		}
		rest = rest[end+1:]
	}
	if id := "<" + strings.TrimSpace(s) + ">"; len(ids) == 0 && strings.Contains(id, "@") && validMessageID(id) {
		return []string{id}
	}
	return newestAndOldest(ids)
}

// newestAndOldest cuts a list down from its middle: the oldest is the root of
// the thread, the newest are the likeliest to be known.
func newestAndOldest(ids []string) []string {
	if len(ids) <= maxReferences {
		return ids
	}
	return slices.Delete(ids, maxRoots, len(ids)-maxReferences+maxRoots)
}

// validMessageID reports whether id is "<x>" of printable ASCII.
func validMessageID(id string) bool {
	if len(id) < 3 || len(id) > maxMessageID || id[0] != '<' || id[len(id)-1] != '>' {
		return false
	}
	for _, c := range []byte(id[1 : len(id)-1]) {
		if c <= ' ' || c >= 0x7f || c == '<' || c == '>' {
			return false
		}
	}
	return true
}
