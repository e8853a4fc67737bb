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

// isJoint reports whether two words with this text between them form one
// phrase.
func isJoint(between string) bool {
	switch strings.TrimSpace(between) {
	case "", "-", "de", "de la", "du", "d'", "d’", "del", "di", "da", "do", "dla", "na", "til", "för", "для", "の", "ال":
		return true
	}
	return false
}

// isNoun reports whether a kind names a code.
func (k wordKind) isNoun() bool { return k == codeNoun || k == weakNoun || k == openNoun }

// maxNamed is how far before "code" its name is searched, in bytes.
const maxNamed = 32

// namedElse returns the penalty for an unknown name before an English "code",
// as in "driver code 4471". Known words and capitalized company names within
// the sentence have no penalty. "ACME (code 600519)" has a higher one. In other
// languages the name follows the noun: "codice ateco: 620100". It then returns
// true, too. number is the start of the number.
func (t *codeText) namedElse(line codeLine, noun codeWord, number int) (penalty int, label bool) {
	text := strings.ToLower(t.text[noun.start:noun.end])
	if wordSets().namedBehind[text] && t.namedAfter(noun.end, number) {
		return 2, true
	}
	if text != "code" && !wordSets().namedBefore[text] {
		return 0, false
	}
	before := t.text[line.start:noun.start]
	if strings.HasSuffix(before, "(") {
		return 3, false
	}
	if !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "-") {
		return 0, false
	}
	before = before[:len(before)-1]
	at := len(before)
	for at > 0 && len(before)-at < maxNamed && (byteKind[before[at-1]]&(lowerByte|upperByte) != 0 || before[at-1] >= utf8.RuneSelf && text != "code") {
		at--
	}
	name := before[at:]
	if name == "" || at > 0 && (before[at-1] >= utf8.RuneSelf || plaintext.IsDigit(before[at-1])) {
		return 0, false
	}
	company := byteKind[name[0]]&upperByte != 0 && at > 1 && plaintext.IsAlnum(before[at-2])
	low := lowerInPlace(name)
	if company || plainNames[low] || wordSets().plain[low] {
		return 0, false
	}
	if e := knownWords().match(low, false); e != nil && e.kind != otherThing {
		return 0, false
	}
	return 2, false
}

// namedAfter reports whether one unknown word is between a noun and its number,
// and perhaps a colon. A capitalized one without a colon is a company.
func (t *codeText) namedAfter(noun, number int) bool {
	if number-noun > maxNamed {
		return false
	}
	text := strings.TrimSpace(t.text[noun:number])
	name, colon := strings.CutSuffix(text, ":")
	name = lowerInPlace(strings.TrimRight(name, " "))
	for _, joint := range []string{"de la ", "de ", "del ", "du ", "di ", "da ", "do "} { // "código de agente"
		if rest, ok := strings.CutPrefix(name, joint); ok {
			name, text = rest, text[len(joint):]
			break
		}
	}
	if !colon && (name == "" || name[:1] != text[:1]) {
		return false
	}
	return name != "" && !strings.ContainsAny(name, " )](,.-–—\"'«“=*#") && !plainNames[name] && !wordSets().plain[name] && !isCopula(name) && knownWords().match(name, false) == nil
}

// plainNames are words before "code" that do not change its meaning.
var plainNames = plaintext.WordSet(`fresh|current|updated|replacement|door|gate|entry|entrance|keypad|wifi|wi-fi|room|guest|your|the|this|that|a|an|my|our|following|above|below|new|digit|digits|character|number|numeric|numerical|unique|personal|secret|special|short|single|use|sms|text|email|mail|via|by|with|is|valid|same|these
	|first|second|last|latest|correct|right|pass|and|or|of|it|in|for|to|as|his|her|their|no|any|another|other|each|here|time|up|on|recovery|auth|app|account|device|user|pairing|pair|guard|backup|reset|in
	|secret|segreto|secreto|secreta|segreta|tajny|geheim|personnel|personale|pessoal|persönlich|unique|unico|único|numérique|numérico|numerico|digital|chiffres|cyfrowy|osobisty|anda|ваш|tuo|seu
	|den|der|dem|dein|deinen|deine|ihr|ihren|ihre|diesen|dieser|folgenden|folgender|nachstehenden|neuen|neuer|neue|einen|einem|ein|sie|du|le|ce|votre|ton|nouveau|un|du|au|dernier|mon|du|ci|de|je|uw|jouw|deze|nieuwe|volgende|onderstaande|een|die|dit|ang|na|iyong|bagong`)

// isCopula reports whether a lower-case word connects a code and its noun, in
// either order, as "is" does.
func isCopula(word string) bool { return wordSets().copula[word] }

// isArticle reports whether an article may stand between "is" and a code.
func isArticle(word string) bool { return wordSets().article[word] }

// endsInCopula reports whether a text ends in "is". In Chinese and Japanese, no
// space precedes it.
func endsInCopula(text string) bool {
	word := lastLetters(text)
	if isArticle(word) { // "est le 482913"
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
