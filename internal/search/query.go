package search

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/store"
)

// Parse reads what is looked for: words, and phrases in double quotes. All must
// occur. A quote that is not closed reaches to the end. What is typed without a
// space, such as an address or a word of a language that writes none, is looked
// for as a phrase. Every text can be parsed; one without a letter or a digit
// finds nothing.
func Parse(q string) *store.TextQuery {
	out := &store.TextQuery{Text: Text}
	quoted := false
	for part := range strings.SplitSeq(quotes.Replace(q), `"`) {
		if quoted {
			add(out, part)
		} else {
			for word := range strings.FieldsSeq(part) {
				add(out, word)
			}
		}
		quoted = !quoted
	}
	slices.Sort(out.Words)
	out.Words = slices.Compact(out.Words)
	return out
}

// quotes makes one of the quotes that keyboards and phones write.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "＂", `"`)

// add adds the words of a text, as a phrase when there are several.
func add(out *store.TextQuery, text string) {
	words := strings.Fields(fold(text))
	out.Words = append(out.Words, words...)
	if len(words) > 1 {
		out.Phrases = append(out.Phrases, words)
	}
}
