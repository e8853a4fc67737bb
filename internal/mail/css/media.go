package css

import (
	"slices"
	"strconv"
	"strings"
)

// The window in which a message is taken to be read: on a screen, in colour, by day.
const windowWidth, windowHeight = 800, 600

// holds reports whether the rules in the block of an at-rule hold in the window.
func holds(prelude []Token) bool {
	words := prelude[1:]
	switch strings.ToLower(prelude[0].Text) {
	case "media":
		for query := range splitTokens(words, ",") {
			if mediaHolds(query) {
				return true
			}
		}
		return len(words) == 0
	case "supports":
		for _, t := range words {
			if text := strings.ToLower(t.Text); text == "not" || strings.HasPrefix(text, "-moz-") || strings.HasPrefix(text, "-ms-") {
				return false
			}
		}
		return true
	case "layer", "container", "scope", keyframes, "-webkit-" + keyframes:
		return true
	}
	return false
}

// MediaHolds reports whether a media query holds in the window.
func MediaHolds(query string) bool {
	return holds(append([]Token{{At, "media"}}, NewTokens(query).all()...))
}

// mediaHolds reports whether one query of a list holds.
func mediaHolds(query []Token) bool {
	not, result := false, true
	for i := 0; i < len(query); i++ {
		t := query[i]
		switch {
		case t.Is("("):
			end := i + slices.IndexFunc(query[i:], func(t Token) bool { return t.Is(")") })
			if end < i {
				return false
			}
			result = result && featureHolds(query[i+1:end])
			i = end
		case t.Kind == Ident:
			switch strings.ToLower(t.Text) {
			case "not":
				not = true
			case "only", "and", "all", "screen":
			default:
				result = false
			}
		}
	}
	return result != not
}

// featureHolds reports whether a condition in a media query holds, such as "max-width: 600px"
// or "width >= 400px".
func featureHolds(tokens []Token) bool {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.Kind == Space })
	if len(tokens) == 0 || tokens[0].Kind != Ident {
		return false
	}
	name, rest := strings.ToLower(tokens[0].Text), tokens[1:]
	op := ""
	for len(rest) > 0 && rest[0].Kind == Mark {
		op, rest = op+rest[0].Text, rest[1:]
	}
	if len(rest) == 0 {
		return name == "color" || name == "hover" || name == "pointer" || name == "width" || name == "height"
	}
	bound, name, _ := strings.Cut(name, "-")
	if bound != "min" && bound != "max" {
		bound, name = "", strings.ToLower(tokens[0].Text)
	}
	value := 0.0
	switch name {
	case "width", "device-width":
		value = windowWidth
	case "height", "device-height":
		value = windowHeight
	case "resolution":
		value = 1
	default:
		word := strings.ToLower(rest[0].Text)
		return slices.Contains([]string{"light", "no-preference", "landscape", "hover", "fine", "srgb", "none", "standalone=false"}, word) && name != "hover" && name != "pointer" ||
			name == "hover" && word == "hover" || name == "pointer" && word == "fine" || strings.HasSuffix(name, "device-pixel-ratio") && word <= "1"
	}
	n := length(rest[0], 16, windowWidth/100)
	if name == "resolution" {
		n, _ = strconv.ParseFloat(strings.TrimRight(rest[0].Text, "dpcmxi"), 64)
		if strings.HasSuffix(rest[0].Text, "dpi") {
			n /= 96
		}
	}
	switch {
	case bound == "min", op == ">=":
		return value >= n
	case bound == "max", op == "<=":
		return value <= n
	case op == ">":
		return value > n
	case op == "<":
		return value < n
	}
	return value == n
}

// unescape resolves the escapes of letters, digits and hyphens, which may hide a property, a
// word or a name (CSS Syntax Module Level 3, section 4.3.7). Others stay.
func unescape(s string) string {
	at := strings.IndexByte(s, '\\')
	if at < 0 {
		return s
	}
	var out strings.Builder
	for ; at >= 0 && at+1 < len(s); at = strings.IndexByte(s, '\\') {
		out.WriteString(s[:at])
		rest := s[at+1:]
		n := 0
		for n < min(6, len(rest)) && (isDigit(rest[n]) || rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'f') {
			n++
		}
		code := rune(rest[0])
		if n > 0 {
			v, _ := strconv.ParseUint(rest[:n], 16, 32)
			code = rune(v)
			if n < len(rest) && isSpace(rest[n]) {
				n++
			}
		} else {
			n = 1
		}
		if code < 0x80 && isNamePart(byte(code)) {
			out.WriteByte(byte(code))
		} else {
			out.WriteString(s[at : at+1+n])
		}
		s = rest[n:]
	}
	out.WriteString(s)
	return out.String()
}
