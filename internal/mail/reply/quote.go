package reply

import (
	"slices"
	"strings"
	"unicode"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// separatorKind returns the kind of a separator line such as "-----Original
// Message-----".
func separatorKind(line string) quoteKind {
	trimmed := strings.Trim(line, " *_")
	dashed := strings.HasPrefix(trimmed, "--")
	if !dashed && !strings.HasPrefix(trimmed, "Begin forwarded") {
		return noQuote
	}
	words := strings.ToLower(strings.Trim(trimmed, "-=_* :"))
	switch {
	case words == "" || len(words) > 200:
	case hasAny(words, originalWords) && len(words) <= 60:
		return replyQuote
	case hasAny(words, forwardWords) && len(words) <= 60:
		return forwardQuote
	case strings.HasSuffix(trimmed, "--") && endsWithWrote(words) && hasDate(words):
		return replyQuote
	}
	return noQuote
}

// isDashed reports whether a line has dashes at both ends. Above a header, it
// separates the quoted message in any language: "----- Mail original -----".
func isDashed(line string) bool {
	return strings.HasPrefix(line, "--") && strings.HasSuffix(line, "--") && len(line) <= 100
}

// dropInvisible drops invisible characters, such as direction marks, with
// strings.Map.
func dropInvisible(r rune) rune {
	if plaintext.IsInvisible(r) {
		return -1
	}
	return r
}

// asksAbove reports whether a line asks to reply above it, as help desks do.
func asksAbove(line string) bool {
	return len(line) <= 200 && hasAny(strings.ToLower(line), aboveWords)
}

// mayAskAbove reports whether a text may contain such a line.
func mayAskAbove(text string) bool {
	return slices.ContainsFunc(aboveStems, func(stem string) bool { return strings.Contains(text, stem) })
}

const (
	maxAttributionLines = 4
	maxAttribution      = 500 // bytes
)

// attribution returns the number of lines from i on that form an attribution,
// as in "On Monday, Ann <ann@example.com> wrote:", or 0. Email clients wrap it.
// It must contain a date and either the verb or an address. Without a quoted line
// below it, the date must be a whole one or the line must have an address, because
// people also write "at 10:15 Ann wrote:".
func (r *replyReader) attribution(i int) int {
	if !r.colonFollows(i) {
		return r.bareAttribution(i)
	}
	var joined strings.Builder
	for n := 1; n <= maxAttributionLines && i+n <= len(r.lines); n++ {
		line := r.lines[i+n-1]
		if line == "" || isQuoted(line) && n > 1 && !closesAttribution(line) {
			return 0
		}
		joined.WriteString(" " + line)
		if joined.Len() > maxAttribution {
			return 0
		}
		if !plaintext.EndsWithColon(line) {
			continue
		}
		low := strings.ToLower(strings.TrimRight(joined.String(), ":： "))
		if !hasDate(low) || n > 1 && !startsAttribution(r.lines[i]) {
			continue
		}
		low = strings.TrimRight(strings.Map(dropInvisible, low), ": ")
		if endsWithWrote(low) && (hasYear(low) || r.quoteFollows(i+n)) || strings.Contains(low, "@") && (strings.HasSuffix(low, ">") || strings.HasSuffix(low, "]") || r.quoteFollows(i+n)) {
			return n
		}
	}
	return 0
}

// closesAttribution reports whether a line is the end of a wrapped "On ...
// <ann@example.com> wrote:", with the bracket first.
func closesAttribution(line string) bool {
	return strings.HasPrefix(line, "> ") && plaintext.EndsWithColon(line) && len(line) <= 40 && endsWithWrote(strings.ToLower(line))
}

// bareAttribution is attribution for a date, a name and an address without a
// colon, above a quoted line: "2026/11/13 Ann <ann@example.com>".
func (r *replyReader) bareAttribution(i int) int {
	line := r.lines[i]
	at := strings.IndexByte(line, '<')
	if len(line) > maxAttribution || at <= 0 || !plaintext.HasDigit(line[:1]) || !hasDate(line[:at]) || !strings.HasSuffix(line, ">") ||
		strings.IndexByte(line[at:], '@') < 0 || !r.quoteFollows(i+1) {
		return 0
	}
	return 1
}

// quoteFollows reports whether the first non-empty line from i on is quoted.
func (r *replyReader) quoteFollows(i int) bool {
	for ; i < len(r.lines) && r.lines[i] == ""; i++ {
	}
	return i < len(r.lines) && isQuoted(r.lines[i])
}

// colonFollows reports whether line i, or a line it may be wrapped to, ends
// with a colon.
func (r *replyReader) colonFollows(i int) bool {
	for _, line := range r.lines[i:min(i+maxAttributionLines, len(r.lines))] {
		if line == "" {
			return false
		}
		if plaintext.EndsWithColon(line) {
			return true
		}
	}
	return false
}

// startsAttribution reports whether a line may start a wrapped attribution: it
// has a digit and does not end a sentence.
func startsAttribution(line string) bool {
	return plaintext.HasDigit(line) && !strings.HasSuffix(line, ".")
}

// endsWithWrote reports whether a verb such as "wrote" is near the end.
func endsWithWrote(low string) bool {
	if len(low) > 200 {
		low = low[len(low)-200:]
	}
	return hasAny(low, wroteWords)
}

// hasDate reports whether a line has a four-digit number, a time or an address.
func hasDate(low string) bool {
	if strings.Contains(low, "@") {
		return true
	}
	run := 0
	for i := 0; i < len(low); i++ {
		if !plaintext.IsDigit(low[i]) {
			if run > 0 && run <= 2 && (low[i] == ':' || low[i] == '.') && i+2 < len(low) && plaintext.IsDigit(low[i+1]) && plaintext.IsDigit(low[i+2]) {
				return true
			}
			run = 0
			continue
		}
		if run++; run == 4 {
			return true
		}
	}
	return false
}

// hasYear reports whether an attribution has an address, or a date with a year.
func hasYear(low string) bool {
	if strings.Contains(low, "@") {
		return true
	}
	digits, groups := 0, 0 // of the current number; numbers joined by "." "/" or "-"
	for i := range len(low) {
		switch c := low[i]; {
		case plaintext.IsDigit(c):
			if digits++; digits == 4 || digits == 1 && groups == 2 {
				return true
			}
		case digits > 0 && (c == '.' || c == '/' || c == '-'):
			digits, groups = 0, groups+1
		default:
			digits, groups = 0, 0
		}
	}
	return false
}

// headerBlock returns the number of lines from i on that show at least three
// header fields of the quoted message, or 0. Three fields count only with an
// address, so that a form with "From", "To" and "Date" is not one.
func (r *replyReader) headerBlock(i int) int {
	fields, n, address := 0, 0, false
	if countLabels(r.lines[i]) >= 3 {
		return 1
	}
	for i+n < len(r.lines) && n < 12 {
		line := strings.TrimLeft(r.lines[i+n], " *\t")
		switch {
		case isLabelled(line):
			fields++
			address = address || strings.IndexByte(line, '@') >= 0
		case n == 0:
			return 0
		case line == "" && i+n+1 < len(r.lines) && isLabelled(r.lines[i+n+1]): // some clients leave lines empty
		case line == "":
			return blockLength(n, fields, address)
		case fields < 2 && n > 2:
			return 0
		}
		n++
	}
	return blockLength(n, fields, address)
}

// blockLength returns the length n of a header block, or 0 if it shows too few
// fields.
func blockLength(n, fields int, address bool) int {
	if fields > 3 || fields == 3 && address {
		return n
	}
	return 0
}

// maxFieldName is the maximum length of a field name in bytes. countLabels
// reads no more before each colon, so that a line of colons takes linear time.
const maxFieldName = 40

// countLabels returns the number of header field names on a line, at most 3, as
// in "From: ... Sent: ... To: ..." joined to one line.
func countLabels(line string) int {
	if !isLabelled(strings.TrimLeft(line, " *\t")) {
		return 0
	}
	n := 0
	for rest := line; n < 3; n++ {
		end := strings.IndexByte(rest, ':')
		for end >= 0 && !headerLabels[lastWord(rest[max(0, end-maxFieldName):end])] {
			next := strings.IndexByte(rest[end+1:], ':')
			if next < 0 {
				return n
			}
			end += 1 + next
		}
		if end < 0 {
			return n
		}
		rest = rest[end+1:]
	}
	return n
}

// lastWord returns the text after the last space of s, in lower case.
func lastWord(s string) string {
	s = strings.Trim(s, " *\u00a0")
	return strings.ToLower(strings.Trim(s[strings.LastIndexByte(s, ' ')+1:], "*"))
}

// isLabelled reports whether a line starts with the name of a header field.
func isLabelled(line string) bool {
	start := plaintext.Truncate(line, 40)
	end := strings.IndexByte(start, ':')
	if end < 0 {
		end = strings.Index(start, "：")
	}
	if end <= 0 {
		return false
	}
	label := strings.Trim(strings.ToLower(line[:end]), " *\u00a0")
	return headerLabels[label]
}

// isSignature reports whether a line starts a signature: the separator of RFC
// 3676 section 4.3, or a line that a mobile client adds.
func isSignature(line string) bool {
	if line == "" || len(line) > 100 {
		return false
	}
	switch line[0] {
	case '-', '_', 0xe2: // the first byte of "—"
		if line == "--" || line == "—" || line == "__" || len(line) >= 5 && strings.Trim(line, "_") == "" {
			return true
		}
	}
	for line != "" && strings.IndexByte(beforeSignature, line[0]) >= 0 {
		line = line[1:]
	}
	if line == "" {
		return false
	}
	for _, start := range signaturesByFirst[plaintext.LowerASCII(line[0])] {
		if len(line) >= len(start) && strings.EqualFold(line[:len(start)], start) {
			return !moreWords(line, maxSignatureWords)
		}
	}
	return false
}

// beforeSignature are the characters that may stand before the words of a signature.
const beforeSignature = " *_<[("

// signaturesByFirst are signatureStarts by their first byte. Few lines begin with one.
var signaturesByFirst = func() (by [256][]string) {
	for _, start := range signatureStarts {
		by[start[0]] = append(by[start[0]], start)
	}
	return by
}()

// isDeviceLine reports whether a line after an empty line looks like one that a
// mobile client adds in any language: a few words, including one for sending
// and one for the device.
func isDeviceLine(line string) bool {
	if line == "" || len(line) > 100 || moreWords(line, maxSentWords) {
		return false
	}
	low := strings.ToLower(line)
	return hasAny(low, deviceWords) && hasAny(low, sentWords)
}

// Device lines have at most maxSentWords words, signatures that begin with
// "Sent from" at most maxSignatureWords.
const (
	maxSentWords      = 7
	maxSignatureWords = 12
)

// moreWords reports whether a line has more than limit words.
func moreWords(line string, limit int) bool {
	n, inWord := 0, false
	for i := 0; i < len(line) && n <= limit; i++ {
		space := line[i] == ' '
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n > limit
}

// isRule reports whether a line is a horizontal rule.
func isRule(line string) bool {
	return len(line) >= 3 && strings.Trim(line, "-_=*~#+ ") == ""
}

// hasAny reports whether s contains one of the words as a word.
func hasAny(s string, words []string) bool {
	for _, w := range words {
		for from := 0; ; {
			i := strings.Index(s[from:], w)
			if i < 0 {
				break
			}
			i += from
			if !letterBefore(s[:i]) && !letterAfter(s[i+len(w):]) {
				return true
			}
			from = i + len(w)
		}
	}
	return false
}

func letterBefore(s string) bool {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i]&0xc0 != 0x80 {
			return startsWithWordLetter(s[i:])
		}
	}
	return false
}

func letterAfter(s string) bool { return startsWithWordLetter(s) }

// startsWithWordLetter reports whether s starts with a letter of a script that
// uses spaces.
func startsWithWordLetter(s string) bool {
	for _, r := range s {
		return unicode.IsLetter(r) && !plaintext.IsUnspaced(r)
	}
	return false
}
