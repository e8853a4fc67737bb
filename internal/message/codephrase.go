package message

import "strings"

// joinPhrases turns a noun into the name of something else where a word beside
// it says so: "dress code", "code postal", "mã giảm giá". What is left of such
// words says nothing by itself, but for those of a shop, which name the
// numbers near them as "order" does.
func joinPhrases(text string, offset int, words []codeWord) []codeWord {
	for i := range words {
		w := &words[i]
		if w.kind != codeNoun && w.kind != weakNoun {
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

// isJoint reports whether two words with this between them are one phrase.
func isJoint(between string) bool {
	switch strings.TrimSpace(between) {
	case "", "-", "de", "de la", "du", "d'", "d’", "del", "di", "da", "do", "dla", "na", "til", "för", "для", "の", "ال":
		return true
	}
	return false
}
