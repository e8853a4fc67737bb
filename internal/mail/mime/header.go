package mime

import (
	"bytes"
	"cmp"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Fields calls yield for each field of a header block. It skips lines that are
// neither a field nor the continuation of one.
func Fields(block []byte, yield func(Field)) {
	for len(block) > 0 {
		end := fieldEnd(block)
		raw := block[:end:end]
		block = block[end:]
		colon := bytes.IndexByte(raw, ':')
		if colon <= 0 {
			continue
		}
		if name := bytes.TrimRight(raw[:colon], " \t"); IsFieldName(name) {
			yield(Field{Name: name, Raw: raw, value: bytes.TrimSpace(raw[colon+1:])})
		}
	}
}

// fieldEnd returns the length of the first field of block, including its
// continuation lines.
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

// IsFieldName reports whether name is a valid field name (RFC 5322 section
// 3.6.8).
func IsFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return len(name) > 0
}

// IsHeaderLine reports whether a line may belong to a header: it has a field
// name or continues a field.
func IsHeaderLine(line []byte) bool {
	if line[0] == ' ' || line[0] == '\t' {
		return true
	}
	colon := bytes.IndexByte(line, ':')
	return colon > 0 && IsFieldName(bytes.TrimRight(line[:colon], " \t"))
}

// parseDate parses a Date field and returns it in UTC, or the zero time if it
// is malformed.
func parseDate(s string) time.Time {
	t, err := time.Parse("Mon, 2 Jan 2006 15:04:05 -0700", s) // the most common form
	if err != nil {
		s = numericZone(s)
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

// numericZone returns a date with an offset for a zone that is a name, or that only
// a comment at the end has.
func numericZone(s string) string {
	date, comment, _ := strings.Cut(s, "(")
	date = strings.TrimRight(date, " ")
	at := strings.LastIndexByte(date, ' ') + 1
	if offset := namedOffset(date[at:]); offset != "" {
		return date[:at] + offset
	}
	if offset := namedOffset(strings.TrimRight(comment, " )")); offset != "" && strings.IndexByte(date[at:], ':') > 0 {
		return date + " " + offset
	}
	return s
}

// zoneHours are the zones of RFC 5322 section 4.3 other than Universal Time, and
// others whose names have one meaning.
var zoneHours = map[string]string{
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
	"EST5EDT": "-0500", "CST6CDT": "-0600", "MST7MDT": "-0700", "PST8PDT": "-0800",
	"WEST": "+0100", "CET": "+0100", "CEST": "+0200", "MEZ": "+0100", "MESZ": "+0200", "MET": "+0100", "MEST": "+0200", "EET": "+0200", "EEST": "+0300",
	"MSK": "+0300", "SGT": "+0800", "HKT": "+0800", "JST": "+0900", "KST": "+0900", "AEST": "+1000", "AEDT": "+1100", "NZST": "+1200", "NZDT": "+1300",
}

// namedOffset returns the offset of a zone that is written as "EST", "GMT+2",
// "UTC+0200" or "GMT+02:00", or "".
func namedOffset(zone string) string {
	zone = strings.ToUpper(zone)
	if offset := zoneHours[zone]; offset != "" {
		return offset
	}
	offset, ok := strings.CutPrefix(zone, "GMT")
	if !ok {
		offset, ok = strings.CutPrefix(zone, "UTC")
	}
	if !ok || len(offset) < 2 || offset[0] != '+' && offset[0] != '-' {
		return ""
	}
	sign, digits := offset[:1], strings.Replace(offset[1:], ":", "", 1)
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	if len(digits) == 2 {
		digits += "00"
	}
	if _, err := strconv.ParseUint(digits, 10, 16); err != nil || len(digits) != 4 {
		return ""
	}
	return sign + digits
}

// parseOddDate parses date formats that violate RFC 5322 but occur in messages: by
// what each word looks like, in any order.
func parseOddDate(s string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05"} {
		if t, err = time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t, nil
		}
	}
	day, month, year, clock, zone, half := "", "", "", "", "+0000", ""
	words := strings.FieldsFunc(withoutComments(plaintext.Truncate(s, maxDate)), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	for _, word := range words {
		if parts := strings.Split(word, "-"); len(parts) == 3 && isMonth(parts[1]) {
			day, month, year = parts[0], parts[1], parts[2]
			continue
		}
		switch c, upper := word[0], strings.ToUpper(word); {
		case c == '+' || c == '-':
			zone = cmp.Or(namedOffset("GMT"+word), word)
		case clock == "" && strings.IndexByte(word, ':') > 0:
			clock, _, _ = strings.Cut(upper, ".")
		case upper == "AM" || upper == "PM":
			half = upper
		case !plaintext.IsDigit(c):
			if month == "" && isMonth(word) {
				month = word
			} else if clock != "" {
				zone = cmp.Or(namedOffset(word), zone)
			}
		case day == "" && len(word) <= 2:
			day = word
		case year == "":
			year = word
		}
	}
	if month = plaintext.Truncate(month, 3); len(year) == 2 {
		year = "20" + year
	}
	for _, layout := range []string{"2 Jan 2006 15:4:5 -0700", "2 Jan 2006 15:4 -0700", "2 Jan 2006 3:4:5PM -0700", "2 Jan 2006 3:4PM -0700"} {
		if t, err = time.Parse(layout, day+" "+month+" "+year+" "+clock+half+" "+zone); err == nil {
			return t, nil
		}
	}
	return t, err
}

// maxDate is longer than any date, in bytes.
const maxDate = 200

// isMonth reports whether a word begins as the English name of a month does.
func isMonth(word string) bool {
	return len(word) >= 3 && strings.Contains("jan feb mar apr may jun jul aug sep oct nov dec", strings.ToLower(word[:3]))
}

const (
	maxMessageID  = 900 // bytes; a longer one does not fit on a header line
	maxReferences = 100 // identifiers kept per field: the oldest and the newest
	maxRoots      = 10  // number of the oldest
)

// MessageIDs returns the message identifiers in a field (RFC 5322 section
// 3.6.4) with angle brackets. It joins an identifier that a program folded. It
// skips identifiers that are not printable ASCII, so that all can be used in a
// reply.
func MessageIDs(s string) []string {
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
		if id := joinedID(rest[:end+1]); ValidMessageID(id) {
			ids = append(ids, id)
			if len(ids) == 2*maxReferences {
				ids = newestAndOldest(ids)
			}
		}
		rest = rest[end+1:]
	}
	if id := "<" + strings.TrimSpace(s) + ">"; len(ids) == 0 && strings.Contains(id, "@") && ValidMessageID(id) {
		return []string{id}
	}
	return newestAndOldest(ids)
}

// joinedID returns an identifier without the white space of folds within it. Text
// in angle brackets that is not an address is left as it is.
func joinedID(id string) string {
	if strings.IndexByte(id, '@') < 0 || strings.IndexAny(id, " \t") < 0 {
		return id
	}
	return strings.Join(strings.Fields(id), "")
}

// newestAndOldest removes the middle of a long list. The oldest identifies the
// thread, and the newest are the most likely to be known.
func newestAndOldest(ids []string) []string {
	if len(ids) <= maxReferences {
		return ids
	}
	return slices.Delete(ids, maxRoots, len(ids)-maxReferences+maxRoots)
}

// ValidMessageID reports whether id is printable ASCII in angle brackets.
func ValidMessageID(id string) bool {
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
