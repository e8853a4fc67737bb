package mailauth

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// macroString is text with macros (RFC 7208 section 7).
type macroString []macro

// macro is literal text if letter is 0, else a macro letter with its
// transformers.
type macro struct {
	literal string

	letter  byte // in lower case
	escape  bool // the letter was in upper case: percent-encode the value
	keep    int  // number of right-hand parts to keep; 0 means all
	reverse bool
	delims  string
}

// Macro letters: those that every macro-string may use, and those that only an
// explanation may use.
const (
	macroLetters = "slodiphv"
	expLetters   = "crt"
)

// parseMacro parses a macro-string.
func parseMacro(s string) (macroString, error) {
	if strings.IndexByte(s, ' ') >= 0 {
		return nil, errCharacter
	}
	return parseText(s, macroLetters)
}

// parseExplanation parses an explain-string (RFC 7208 section 6.2).
func parseExplanation(s string) (macroString, error) {
	return parseText(s, macroLetters+expLetters)
}

var (
	errMacro     = errors.New("has a broken macro")
	errCharacter = errors.New("has a character that is not allowed")
)

// parseText parses printable ASCII with macros that use letters.
func parseText(s, letters string) (macroString, error) {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > 0x7e }) >= 0 {
		return nil, errCharacter
	}
	var out macroString
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return append(out, macro{literal: s}), nil
		}
		if i > 0 {
			out = append(out, macro{literal: s[:i]})
		}
		s = s[i+1:]
		if s == "" {
			return nil, errMacro
		}
		switch s[0] {
		case '%':
			out, s = append(out, macro{literal: "%"}), s[1:]
		case '_':
			out, s = append(out, macro{literal: " "}), s[1:]
		case '-':
			out, s = append(out, macro{literal: "%20"}), s[1:]
		case '{':
			inner, rest, ok := strings.Cut(s[1:], "}")
			m, err := parseMacroExpand(inner, letters)
			if !ok || err != nil {
				return nil, errMacro
			}
			out, s = append(out, m), rest
		default:
			return nil, errMacro
		}
	}
	return out, nil
}

// parseMacroExpand parses the text between the braces: a letter, the number of
// parts to keep, "r" to reverse them, and the delimiters.
func parseMacroExpand(s, letters string) (macro, error) {
	if s == "" || !strings.Contains(letters, strings.ToLower(s[:1])) {
		return macro{}, errMacro
	}
	m := macro{letter: s[0] | 0x20, escape: s[0] < 'a'}
	s = s[1:]
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits > 0 {
		n, err := strconv.Atoi(s[:digits])
		if n == 0 {
			return macro{}, errMacro
		}
		if err != nil || n > 128 {
			n = 128 // more than any name has
		}
		m.keep, s = n, s[digits:]
	}
	if s != "" && s[0]|0x20 == 'r' {
		m.reverse, s = true, s[1:]
	}
	if strings.Trim(s, ".-+,/_=") != "" {
		return macro{}, errMacro
	}
	m.delims = s
	return m, nil
}

// parseDomainSpec parses a macro-string that ends with a macro, or with a dot
// and a top label (RFC 7208 section 7.1).
func parseDomainSpec(s string) (macroString, error) {
	spec, err := parseMacro(s)
	if err != nil {
		return nil, err
	}
	if len(spec) == 0 {
		return nil, errors.New("names no domain")
	}
	last := spec[len(spec)-1]
	if last.letter != 0 {
		return spec, nil
	}
	// "%%", "%_" and "%-" also count as macros at the end.
	if strings.HasSuffix(s, "%%") || strings.HasSuffix(s, "%_") || strings.HasSuffix(s, "%-") {
		return spec, nil
	}
	text := strings.TrimSuffix(last.literal, ".")
	dot := strings.LastIndexByte(text, '.')
	if dot < 0 || !isTopLabel(text[dot+1:]) {
		return nil, errors.New("names no domain")
	}
	return spec, nil
}

// isTopLabel reports whether s is a label that is not all digits and neither
// begins nor ends with a hyphen.
func isTopLabel(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlpha(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return !isNumber(s)
}

// transform splits value at the delimiters, reverses the parts, keeps the
// right-hand ones and joins them with dots (RFC 7208 section 7.3).
func (m macro) transform(value string) string {
	if m.keep > 0 || m.reverse || m.delims != "" {
		parts := splitAny(value, cmp.Or(m.delims, "."))
		if m.reverse {
			slices.Reverse(parts)
		}
		if m.keep > 0 && m.keep < len(parts) {
			parts = parts[len(parts)-m.keep:]
		}
		value = strings.Join(parts, ".")
	}
	if m.escape {
		value = percentEncode(value)
	}
	return value
}

// splitAny splits s at every character in delims.
func splitAny(s, delims string) []string {
	var parts []string
	for {
		i := strings.IndexAny(s, delims)
		if i < 0 {
			return append(parts, s)
		}
		parts, s = append(parts, s[:i]), s[i+1:]
	}
}

// percentEncode escapes all but unreserved characters (RFC 3986 section 2.3).
func percentEncode(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
