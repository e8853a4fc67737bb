package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// digitToken classifies a number, alone or in groups.
func (t *codeText) digitToken(tok *codeToken, r codeRun, l codeLine) {
	groups, uniform := 1, true
	digits, end := r.digits, r.end
	for gap := gapLen(t.text[end:l.end], r.digits == 1); gap > 0; gap = gapLen(t.text[end:l.end], r.digits == 1) {
		next := t.run(end+gap, l.end)
		if next.upper+next.lower > 0 || max(next.last, r.digits) > 4 && (next.hyphens > 0 || next.digits != r.digits) {
			break
		}
		uniform = uniform && next.uniform && next.first == r.digits
		groups += next.hyphens + 1
		digits += next.digits
		end = next.end
	}
	if r.digits > 4 && groups < 3 {
		groups, end = 1, r.end // two numbers; "77120 48213 90017" is one
	}
	switch {
	case groups > 1 && uniform && digits <= maxDigits && digits >= 4:
		tok.end, tok.shape, tok.value = end, groupCode, plaintext.Digits(t.text[tok.start:end])
	case groups == 2 && digits >= 5 && digits <= 8 && (tok.start == l.start || r.digits >= 3) && !isYear(t.text[r.start:r.end]) && (end == l.end || strings.IndexByte(" .,;)", t.text[end]) >= 0):
		tok.end, tok.shape = end, unevenCode // "12 3456 is your code", or alone
		tok.value = plaintext.Digits(t.text[tok.start:end])
	case groups == 3 && digits >= 5 && digits <= 8 && tok.start == l.start && end == l.end:
		tok.end, tok.shape = end, unevenCode // "448 120 77", alone
		tok.value = plaintext.Digits(t.text[tok.start:end])
	case groups > 1 && digits >= 9: // a phone or account number
		tok.end = end
	case minDigits <= r.digits && r.digits <= maxDigits:
		tok.shape, tok.value = digitCode, t.text[r.start:r.end]
	}
}

// gapLen returns the length of the gap at the start of s between two groups of
// digits: a space or a cell border, or a dash between single digits. It returns 0
// if no digit follows.
func gapLen(s string, single bool) int {
	for _, gap := range []string{" ", "\t", "\t-\t", " - ", "·"} {
		if (single || gap != " - ") && len(s) > len(gap) && strings.HasPrefix(s, gap) && plaintext.IsDigit(s[len(gap)]) {
			return len(gap)
		}
	}
	return 0
}

// hyphenToken classifies numbers joined by hyphens. If they begin with a year,
// they are a date or a file number.
func (t *codeText) hyphenToken(tok *codeToken, r codeRun) {
	first, last := t.text[r.start:r.start+r.first], t.text[r.end-r.last:r.end]
	if r.digits < 4 || r.digits > 9 || r.first > 4 || isYear(first) || isYear(last) && !r.uniform || isShortDate(t.text[r.start:r.end]) {
		return
	}
	tok.shape, tok.value = groupCode, plaintext.Digits(t.text[r.start:r.end])
	if !r.uniform {
		tok.shape = unevenCode
	}
}

// letterToken classifies letters without digits, which are rarely a code: words
// joined by hyphens, two equal groups of capitals, or capitals with few or no
// vowels.
func (t *codeText) letterToken(tok *codeToken, r codeRun) bool {
	if r.lower > 0 {
		tok.shape, tok.value = wordCode, t.text[r.start:r.end]
		return r.hyphens <= 4 && r.lower >= 12 && r.lower <= 40
	}
	grouped := r.hyphens == 1 && r.uniform && (r.first == 3 || r.first == 4)
	text := t.text[r.start:r.end]
	if !grouped && (r.hyphens > 0 || r.upper < minShort || r.upper > 8 || vowels(text) > 1 || r.upper < minLetters && vowels(text) > 0) {
		return false
	}
	tok.shape, tok.value = letterCode, text
	return true
}

// mixedToken classifies letters and digits.
func (t *codeText) mixedToken(tok *codeToken, r codeRun) {
	text := t.text[r.start:r.end]
	if prefix := r.first; r.hyphens == 1 && r.lower == 0 && r.upper == prefix && prefix <= maxPrefix && r.digits >= 4 && r.digits <= 8 {
		// In "G-123456", one letter, or two before more than four digits, are
		// not typed: they are printed next to the input field. Other prefixes
		// are part of the code.
		tok.shape, tok.value = prefixCode, text
		if prefix == 1 || prefix == 2 && r.digits > minShort {
			tok.value = text[prefix+1:]
		}
		if prefix == 1 {
			tok.shape = digitCode
		}
		return
	}
	n := r.digits + r.upper + r.lower
	switch {
	case r.upper == 0 && r.hyphens == 2 && r.uniform && (r.first == 3 || r.first == 4) && r.digits > 1 && hasMixedGroup(text): // "cdr7-xq2m-91kz"
		tok.shape, tok.value = lowerCode, text
		return
	case r.upper == 0 && r.hyphens >= 2 && r.hyphens <= 4 && r.lower >= 8 && n <= 40 && r.last == r.digits && r.digits <= 4:
		// Words and a number: "kettle-harbor-42".
		if plaintext.IsDigit(text[len(text)-1]) && !isYear(text[len(text)-r.last:]) {
			tok.shape, tok.value = wordCode, text
		}
		return
	case r.upper > 0 && r.lower > 0:
		if n >= minLetters && (n <= maxLetters && r.hyphens <= 1 || n <= maxGrouped && r.hyphens == 2 && r.digits > 1) && (r.digits > 1 || r.hyphens == 1 || isJumbled(text)) && !isMeasure(strings.ToUpper(text)) {
			tok.shape, tok.value = caseCode, text
		}
		return
	case r.lower == 0 && r.hyphens >= 1 && r.hyphens <= maxGroups && (r.hyphens > 1 || r.first < 3 || r.last < 3):
		if n >= minLetters && n <= maxGrouped && r.first >= 2 && !isYear(text[:r.first]) {
			tok.shape, tok.value = groupedCode, text
		}
		return
	}
	if n < minLetters && (n < minShort || r.upper < 2) || n > maxLetters || r.hyphens > 1 || r.hyphens == 1 && (r.first < 3 || r.last < 3) {
		return
	}
	switch {
	case r.lower == 0:
		if !isMeasure(text) {
			tok.shape, tok.value = mixedCode, text
		}
		if n < minLetters {
			tok.shape = shortCode
		}
	case r.upper == 0 && (r.hyphens == 0 || r.uniform) && r.digits > 1 && !isOrdinal(text) && !strings.HasPrefix(text, "0x") && !isYear(text[:r.first]):
		tok.shape, tok.value = lowerCode, text
	}
}

// hasMixedGroup reports whether a group of a text in lower case has letters and
// digits.
func hasMixedGroup(text string) bool {
	for group := range strings.SplitSeq(text, "-") {
		if plaintext.HasDigit(group) && strings.Trim(group, "0123456789") != "" {
			return true
		}
	}
	return false
}

// isJumbled reports whether capitals and digits stand within a text rather than
// at its ends, as in "Rk7mPx", but not in "Phone7".
func isJumbled(text string) bool {
	inner := strings.TrimRight(text, "0123456789")
	return len(inner) > 1 && strings.IndexFunc(inner[1:], unicode.IsUpper) >= 0 && strings.ContainsAny(inner[1:], "0123456789")
}

const (
	maxPrefix  = 5  // letters before the digits of a code: "ACME-5512"
	maxGroups  = 3  // hyphens in a grouped code
	maxGrouped = 14 // letters and digits of a grouped code; license keys are longer
)

// standsFree reports whether a token is not part of an amount, a time, a phone
// number, a path or an email address.
func (t *codeText) standsFree(tok codeToken, l codeLine) bool {
	var before, after, after2 byte
	if tok.start > l.start {
		before = t.text[tok.start-1]
	}
	if tok.end < l.end {
		after = t.text[tok.end]
	}
	if tok.end+1 < l.end {
		after2 = t.text[tok.end+1]
	}
	if after == '#' && tok.shape == digitCode && !plaintext.IsAlnum(after2) {
		after = 0 // "4826#": typed on the keypad of a door
	}
	if before == '#' && tok.shape == digitCode && (tok.start-1 == l.start || t.text[tok.start-2] == ' ') {
		before = 0 // "enter #4812"; the score decides later
	}
	bold := before == after && (before == '*' || before == '_' || before == '~')
	switch {
	case !bold && before != 0 && strings.IndexByte(`$#@&/\_+~^%*`, before) >= 0:
		return false
	case before == '=' && (tok.start-1 == l.start || !plaintext.IsAlnum(t.text[tok.start-2])): // but "OTP=482913"
		return false
	case before == ':' && t.namesFile(tok.start-1, l):
		return false
	case (before == '.' || before == ',' || before == ':' || before == '-') && tok.start-1 > l.start && plaintext.IsDigit(t.text[tok.start-2]):
		return false
	case !bold && after != 0 && strings.IndexByte(`%#@&=/\_+$^`, after) >= 0:
		return false
	case after == '!' && !tok.shape.isDigits() && plaintext.IsAlnum(after2): // a password goes on
		return false
	case after == ',' && plaintext.IsDigit(after2) && t.isClause(tok, l):
		// "验证码为6620,5分钟内有效"
	case (after == '.' || after == ',' || after == ':') && plaintext.IsDigit(after2):
		return false
	}
	return !t.besideCurrency(tok, l)
}

// phoneEnd returns the end of a phone number if its country code precedes the
// number at pos, as in "+44 7700 900318", and otherwise pos.
func (t *codeText) phoneEnd(pos int, l codeLine) int {
	before, spaced := strings.CutSuffix(t.text[l.start:pos], " ")
	at := len(before)
	for at > 0 && len(before)-at < minDigits && plaintext.IsDigit(before[at-1]) {
		at--
	}
	if !spaced || at == len(before) || at == 0 || before[at-1] != '+' {
		return pos
	}
	end := pos
	for digits := 0; end < l.end && digits < maxPhone; end++ {
		if plaintext.IsDigit(t.text[end]) {
			digits++
		} else if end+1 == l.end || strings.IndexByte(" -", t.text[end]) < 0 || !plaintext.IsDigit(t.text[end+1]) {
			break
		}
	}
	return end
}

// maxPhone is the maximum number of digits of a phone number after the country
// code.
const maxPhone = 12

// isClause reports whether a comma after a token ends a clause, although a digit
// follows: Chinese and Japanese letters touch the token and the next number.
func (t *codeText) isClause(tok codeToken, l codeLine) bool {
	if tok.start == l.start || t.text[tok.start-1] < utf8.RuneSelf && t.text[tok.start-1] != ':' {
		return false
	}
	at := tok.end + 1
	for at < l.end && at-tok.end < maxDigits && plaintext.IsDigit(t.text[at]) {
		at++
	}
	r, _ := utf8.DecodeRuneInString(t.text[at:l.end])
	return plaintext.IsUnspaced(r)
}

// namesFile reports whether the word that ends at pos contains a dot, as in
// "main.go:4412" and "host.example:8025".
func (t *codeText) namesFile(pos int, l codeLine) bool {
	at := pos
	for at > l.start && plaintext.IsAlnum(t.text[at-1]) {
		at--
	}
	return at < pos && at-1 > l.start && t.text[at-1] == '.' && plaintext.IsAlnum(t.text[at-2])
}

// besideCurrency reports whether a currency sign precedes or follows the token.
func (t *codeText) besideCurrency(tok codeToken, l codeLine) bool {
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRight(t.text[l.start:tok.start], " "))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeft(t.text[tok.end:l.end], " "))
	return isCurrency(before) || isCurrency(after)
}

// addressLen returns the number of leading characters of s that may occur in an
// email address, and whether they include an "@".
func addressLen(s string) (n int, isAddress bool) {
	for i := range len(s) {
		c := s[i]
		switch {
		case plaintext.IsAlnum(c), c == '.', c == '_', c == '-', c == '+', c == '%':
		case c == '@' && !isAddress:
			isAddress = true
		default:
			return i, isAddress
		}
	}
	return len(s), isAddress
}

// isYear reports whether s is a year from 1950 to 2049.
func isYear(s string) bool { return len(s) == 4 && "1950" <= s && s <= "2049" }

// isShortDate reports whether s is a date such as "13-11-26", with day and
// month in either order.
func isShortDate(s string) bool {
	if len(s) != len("13-11-26") || s[2] != '-' || s[5] != '-' {
		return false
	}
	a, b, year := s[:2], s[3:5], s[6:]
	return a > "00" && b > "00" && a <= "31" && b <= "31" && min(a, b) <= "12" && "15" <= year && year <= "40"
}

func vowels(s string) int {
	n := 0
	for _, c := range []byte(s) {
		if strings.IndexByte("AEIOUY", c) >= 0 {
			n++
		}
	}
	return n
}

// isWord reports whether capitals, or all groups of them, may be words: "PATCH",
// "READ-ONLY".
func isWord(s string) bool {
	first, second, _ := strings.Cut(s, "-")
	return vowels(first) > 0 && (second == "" || vowels(second) > 0)
}

// isMeasure reports whether s is a number with a unit, as "200GB", or a word
// with a number, as "SAVE20".
func isMeasure(s string) bool {
	word := strings.TrimRight(s, "0123456789")
	if unit := strings.TrimLeft(s, "0123456789"); len(unit) <= 2 && len(unit) < len(s) && len(s)-len(unit) <= 4 {
		return true
	}
	return len(word) >= 4 && len(word) < len(s) && vowels(word) > 0 && !strings.ContainsAny(word, "0123456789-")
}

// isMasked reports whether s is an account or a card with digits masked: "XX1245",
// "48xxxx10", "XXXXXX".
func isMasked(s string) bool {
	return (strings.Contains(s, "XX") || strings.Contains(s, "xx")) && strings.Trim(s, "0123456789") != "" && strings.Trim(strings.ToUpper(s), "0123456789-X") == ""
}

// followsMask reports whether a number is the rest of one that is masked in groups:
// "XXXX XXXX 1245", "•••• 1245".
func (t *codeText) followsMask(tok codeToken, l codeLine) bool {
	before, spaced := strings.CutSuffix(t.text[l.start:tok.start], " ")
	return spaced && (strings.HasSuffix(before, "XX") || strings.HasSuffix(before, "xx") || strings.HasSuffix(before, "••"))
}

// isLongDate reports whether s is a date such as "12Nov2026".
func isLongDate(s string) bool {
	month := strings.TrimLeft(s, "0123456789")
	return len(s)-len(month) <= 2 && len(month) == len("Nov2026") && isYear(month[3:]) && !plaintext.HasDigit(month[:3])
}

// isOrdinal reports whether s is a number with a short suffix, as "100th" or
// "1500px".
func isOrdinal(s string) bool {
	unit := strings.TrimLeft(s, "0123456789")
	return len(unit) < len(s) && len(unit) <= 3
}
