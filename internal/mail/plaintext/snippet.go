package plaintext

import (
	"strings"
	"unicode"
)

// snippetRunes is the maximum length of a snippet in characters.
const snippetRunes = 200

// Snippet returns the beginning of a text as one line of at most 200
// characters. It folds white space and drops the invisible characters that
// newsletters use as filler.
func Snippet(text string) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range Visible(text) {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = n > 0
			continue
		case IsInvisible(r):
			continue
		}
		if space {
			if n == snippetRunes-1 {
				break
			}
			b.WriteByte(' ')
			n++
			space = false
		}
		b.WriteRune(r)
		if n++; n == snippetRunes {
			break
		}
	}
	return b.String()
}
