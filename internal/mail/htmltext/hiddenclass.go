package htmltext

import (
	"bytes"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxHiddenClasses is the maximum number of hidden classes kept per page.
const maxHiddenClasses = 100

// hiddenClasses adds to known the classes that a style sheet hides, from rules
// with plain class selectors: ".preheader { display: none }". It ignores rules
// within "@media" and similar, which apply to some screens only.
func hiddenClasses(css []byte, known map[string]bool) map[string]bool {
	for len(css) > 0 && len(known) < maxHiddenClasses {
		open := bytes.IndexByte(css, '{')
		if open < 0 {
			break
		}
		selectors := afterComment(css[:open])
		css = css[open+1:]
		if bytes.HasPrefix(selectors, []byte("@")) {
			css = skipBlock(css)
			continue
		}
		end := bytes.IndexByte(css, '}')
		if end < 0 {
			break
		}
		if hidden, _ := readStyle(css[:end]); hidden {
			known = addClasses(known, selectors)
		}
		css = css[end+1:]
	}
	return known
}

// afterComment returns the trimmed text after the last comment or closed rule
// in s.
func afterComment(s []byte) []byte {
	for _, mark := range []string{"*/", "-->", "<!--", ";", "}"} {
		if i := bytes.LastIndex(s, []byte(mark)); i >= 0 {
			s = s[i+len(mark):]
		}
	}
	return bytes.TrimSpace(s)
}

// skipBlock returns the text after the block that s starts in.
func skipBlock(s []byte) []byte {
	for depth := 1; depth > 0; {
		i := bytes.IndexAny(s, "{}")
		if i < 0 {
			return nil
		}
		if s[i] == '{' {
			depth++
		} else {
			depth--
		}
		s = s[i+1:]
	}
	return s
}

// addClasses adds the selectors that consist of a class, with or without an
// element name.
func addClasses(known map[string]bool, selectors []byte) map[string]bool {
	for selector := range bytes.SplitSeq(selectors, []byte(",")) {
		tag, class, ok := bytes.Cut(bytes.TrimSpace(selector), []byte("."))
		if !ok || !isName(tag) || len(class) == 0 || !isName(class) || len(known) == maxHiddenClasses {
			continue
		}
		if known == nil {
			known = map[string]bool{}
		}
		known[string(class)] = true
	}
	return known
}

// isName reports whether s contains only name characters. It may be empty.
func isName(s []byte) bool {
	for _, c := range s {
		if !plaintext.IsAlnum(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
