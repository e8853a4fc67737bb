package extract

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// joinPhrases turns a noun into the name of something else where a word beside
// it says so: "dress code", "code postal", "mã giảm giá". What is left of such
// words says nothing by itself, except those of a shop, which name the
// numbers near them as "order" does.
func joinPhrases(text string, offset int, words []codeWord) []codeWord {
	for i := range words {
		w := &words[i]
		if !w.kind.isNoun() {
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

// isNoun reports whether a kind names a code.
func (k wordKind) isNoun() bool { return k == codeNoun || k == weakNoun || k == openNoun }

// maxNamed is how far before "code" the word that names it is looked for, in
// bytes.
const maxNamed = 32

// namedElse returns what it costs an English "code" to have a name that
// nothing is known of, as in "driver code 4471": neither one that says that it
// is to be typed in, nor that of a company, with its capital letter in the
// middle of the sentence. In brackets it costs more: "ACME (code 600519)".
// Other languages put the name behind: "codice ateco: 620100". number is where
// the number begins.
func (t *codeText) namedElse(line codeLine, noun codeWord, number int) int {
	text := t.text[noun.start:noun.end]
	if namedBehind[strings.ToLower(text)] && t.namedAfter(noun.end, number) {
		return 2
	}
	if !strings.EqualFold(text, "code") {
		return 0
	}
	before := t.text[line.start:noun.start]
	if strings.HasSuffix(before, "(") {
		return 3
	}
	if !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "-") {
		return 0
	}
	before = before[:len(before)-1]
	at := len(before)
	for at > 0 && len(before)-at < maxNamed && byteKind[before[at-1]]&(lowerByte|upperByte) != 0 {
		at--
	}
	name := before[at:]
	if name == "" || at > 0 && (before[at-1] >= 0x80 || plaintext.IsDigit(before[at-1])) {
		return 0
	}
	company := byteKind[name[0]]&upperByte != 0 && at > 1 && plaintext.IsAlnum(before[at-2])
	low := strings.ToLower(name)
	if company || plainNames[low] || knownWords().match(low, false) != nil {
		return 0
	}
	return 2
}

// namedBehind are the nouns whose name stands behind them.
var namedBehind = plaintext.WordSet(`code|codice|código|codigo`)

// namedAfter reports whether one word and a colon stand between a noun and its
// number, and nothing is known of the word.
func (t *codeText) namedAfter(noun, number int) bool {
	if number-noun > maxNamed {
		return false
	}
	name, ok := strings.CutSuffix(strings.TrimSpace(t.text[noun:number]), ":")
	name = strings.ToLower(strings.TrimRight(name, " "))
	return ok && name != "" && !strings.ContainsAny(name, " )]") && !plainNames[name] && !isCopula(name) && knownWords().match(name, false) == nil
}

// plainNames are the words before "code" that make nothing else of it.
var plainNames = plaintext.WordSet(`fresh|current|updated|replacement|door|gate|entry|entrance|keypad|wifi|wi-fi|room|guest|your|the|this|that|a|an|my|our|following|above|below|new|digit|digits|character|number|numeric|numerical|unique|personal|secret|special|short|single|use|sms|text|email|mail|via|by|with|is|valid|same|these
	|first|second|last|latest|correct|right|pass|and|or|of|it|in|for|to|as|his|her|their|no|any|another|other|each|here|time|up|on|recovery|auth|app|account|device|user|pairing|pair|guard|backup|reset|in
	|secret|segreto|secreto|secreta|segreta|tajny|geheim|personnel|personale|pessoal|persönlich|unique|unico|único|numérique|numérico|numerico|digital|chiffres|cyfrowy|osobisty|anda|ваш|tuo|seu`)

// isCopula reports whether a lower-case word stands between a code and its noun,
// in either order: "is".
func isCopula(word string) bool { return wordSets().copula[word] }

// lastLetters returns the word that s ends with, in lower case.
func lastLetters(s string) string {
	at := len(s)
	for at > 0 && len(s)-at < maxNamed && s[at-1] > ' ' {
		at--
	}
	return strings.ToLower(s[at:])
}
