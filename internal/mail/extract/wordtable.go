package extract

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// wordEntry is one word of a table.
type wordEntry struct {
	text     string
	kind     wordKind
	stem     bool // matches as a prefix
	anywhere bool // matches within a word: the script has no spaces, or uses prefixes
	of       bool // next to a noun, the code is of another kind
	opens    bool // names something that has a PIN or number of its own
}

// wordTable holds entries in buckets by a hash of their first two bytes,
// longest first.
type wordTable [1 << 10][]wordEntry

// bucket returns the entries that may start with bytes a and b.
func (t *wordTable) bucket(a, b byte) *[]wordEntry {
	return &t[(uint(a)<<5^uint(b))%uint(len(t))]
}

// addAll adds words of one kind.
func (t *wordTable) addAll(kind wordKind, words []string) {
	for _, text := range words {
		e := wordEntry{kind: kind, of: kind == ofCode || kind == ofShop, opens: kind == elsewhere}
		e.text, e.stem = strings.CutSuffix(strings.TrimSpace(text), "*")
		if len(e.text) < 2 {
			continue
		}
		first, _ := utf8.DecodeRuneInString(e.text)
		e.anywhere = plaintext.IsUnspaced(first) || unicode.In(first, unicode.Hebrew, unicode.Arabic, unicode.Devanagari)
		list := t.bucket(e.text[0], e.text[1])
		*list = append(*list, e)
	}
}

// sort orders entries by length, longest first, and whole words before stems.
// If a word has two kinds, the first applies, with the flags of both.
func (t *wordTable) sort() {
	for _, list := range t {
		slices.SortFunc(list, func(a, b wordEntry) int {
			return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text), cmp.Compare(truth(a.stem), truth(b.stem)), cmp.Compare(a.kind, b.kind))
		})
		for j := len(list) - 1; j > 0; j-- {
			if a, b := &list[j-1], &list[j]; a.text == b.text {
				a.of, a.opens = a.of || b.of, a.opens || b.opens
			}
		}
	}
}

// match returns the entry at the start of s, or nil. afterLetter reports that a
// letter precedes s.
func (t *wordTable) match(s string, afterLetter bool) *wordEntry {
	if len(s) < 2 {
		return nil
	}
	list := *t.bucket(s[0], s[1])
	for i := range list {
		e := &list[i]
		if afterLetter && !e.anywhere || len(s) < len(e.text) || s[:len(e.text)] != e.text {
			continue
		}
		if e.stem || e.anywhere || !startsWithLetter(s[len(e.text):]) {
			return e
		}
	}
	return nil
}

// knownWords and knownUnits are built on first use and then only read.
var (
	knownWords = sync.OnceValue(func() *wordTable { return tableOf(codeSections) })
	knownUnits = sync.OnceValue(func() *wordTable { return tableOf(map[string]wordKind{"unit": noWord}) })
)

// tableOf returns the words of sections of the files, with the kinds of the sections.
func tableOf(sections map[string]wordKind) *wordTable {
	t := &wordTable{}
	for section, kind := range sections {
		t.addAll(kind, wordSections()[section])
	}
	t.sort()
	return t
}

// findWords returns the known words in a line of lower-case text, in order. It
// adds offset to their positions.
func findWords(text string, offset int) []codeWord {
	var found []codeWord
	table := knownWords()
	wordEnd := 0 // end of the word at pos
	for pos := 0; pos < len(text); {
		inWord := pos < wordEnd
		if !inWord {
			if wordEnd = pos + wordLen(text[pos:]); wordEnd == pos {
				pos++
				continue
			}
		}
		e := table.match(text[pos:], inWord)
		if !inWord && (e == nil || e.kind == qualifier && e.stem) {
			if kind := compoundKind(text[pos:wordEnd]); kind != noWord {
				found = append(found, codeWord{offset + pos, offset + wordEnd, kind, false, false})
				pos = wordEnd
				continue
			}
		}
		switch {
		case e != nil:
			found = append(found, codeWord{offset + pos, offset + pos + len(e.text), e.kind, e.of, e.opens})
			pos += len(e.text)
		case text[pos] < utf8.RuneSelf:
			pos = max(pos+1, wordEnd)
		default:
			_, n := utf8.DecodeRuneInString(text[pos:])
			pos += n
		}
	}
	return joinPhrases(text, offset, found)
}

// wordLen returns the length of the word at the start of s, or 0.
func wordLen(s string) int {
	n := 0
	for n < len(s) {
		if s[n] < utf8.RuneSelf {
			if !plaintext.IsAlnum(s[n]) {
				return n
			}
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r):
			return n
		case plaintext.IsUnspaced(r):
			return max(n, size) // each character may start a word
		}
		n += size
	}
	return n
}

// compoundKind returns the kind of a compound word by its ending:
// "bekräftelsekod", "sicherheitscode", "kundnummer".
func compoundKind(word string) wordKind {
	for _, end := range []string{"code", "kod", "koden", "kode", "codes", "koodi", "koodisi", "koodin"} {
		if first, ok := strings.CutSuffix(word, end); ok {
			if e := knownWords().match(first, false); e != nil && e.of {
				return otherThing
			}
			return codeNoun
		}
	}
	for _, end := range []string{"passwort", "kennwort", "wachtwoord", "lösenord", "passord"} {
		if strings.HasSuffix(word, end) {
			return weakNoun
		}
	}
	if strings.HasSuffix(word, "nummer") || strings.HasSuffix(word, "numer") {
		return otherThing
	}
	return noWord
}

func startsWithLetter(s string) bool {
	if len(s) == 0 {
		return false
	}
	if s[0] < utf8.RuneSelf {
		return 'a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z'
	}
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) && !plaintext.IsUnspaced(r)
}
