package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// joinPhrases changes the kind of a noun if an adjacent word makes it the name
// of something else: "dress code", "code postal", "mã giảm giá". It then
// removes these words, except those of a shop, which also describe the numbers
// near them, as "order" does.
func joinPhrases(text string, offset int, words []codeWord) []codeWord {
	for i := range words {
		w := &words[i]
		if 1<<w.kind&nouns == 0 {
			continue
		}
		if i > 0 && words[i-1].of && isJoint(text[words[i-1].end-offset:w.start-offset]) ||
			i+1 < len(words) && words[i+1].of && isJoint(text[w.end-offset:words[i+1].start-offset]) {
			w.kind = otherThing
		}
	}
	kept := words[:0]
	for _, w := range words {
		if w.kind != ofCode {
			kept = append(kept, w)
		}
	}
	return kept
}

// isJoint reports whether two words with this text between them form one
// phrase.
func isJoint(between string) bool {
	switch strings.TrimSpace(between) {
	case "", "-", "de", "de la", "du", "d'", "d’", "del", "di", "da", "do", "dla", "na", "til", "för", "для", "の", "ال":
		return true
	}
	return false
}

// maxNamed is longer, in bytes, than any word that is looked up.
const maxNamed = 32

// isCopula reports whether a lower-case word connects a code and its noun, in
// either order, as "is" does.
func isCopula(word string) bool { return wordSets().copula[word] }

// endsInCopula reports whether a text ends in "is". In Chinese and Japanese, no
// space precedes it.
func endsInCopula(text string) bool {
	word := lastLetters(text)
	if wordSets().article[word] { // "est le 482913"
		text = strings.TrimRight(text[:len(text)-len(word)], " ")
		word = lastLetters(text)
	}
	if isCopula(word) {
		return true
	}
	r, n := utf8.DecodeLastRuneInString(text)
	return (plaintext.IsUnspaced(r) || unicode.Is(unicode.Hangul, r)) && isCopula(text[len(text)-n:])
}

// lastLetters returns the last word of s in lower case.
func lastLetters(s string) string {
	at := len(s)
	for at > 0 && len(s)-at < maxNamed && s[at-1] > ' ' {
		at--
	}
	return strings.ToLower(s[at:])
}
