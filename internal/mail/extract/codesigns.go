package extract

import (
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// codeSigns are the signs of a place where a candidate for a code stands. All
// read a bounded part of the text. Training sets their weights: weights.txt.
var codeSigns = newTable(append(append([]sign[codePlace]{
	{name: "shape", doc: "digits, groups, letters and digits, ...", values: shapeNames, of: func(p *codePlace) int {
		return int(p.tok.shape)
	}},
	{name: "length", doc: "letters and digits, without dashes", values: lengthNames, of: (*codePlace).length},
	{name: "position", doc: "where on its line it stands", values: positionNames, of: func(p *codePlace) int {
		return p.place
	}},
	{name: "link", doc: "what connects it with the words before it", values: linkNames, of: func(p *codePlace) int {
		return p.link
	}},
	{name: "part", doc: "the part of the message", values: textParts, of: func(p *codePlace) int {
		return int(p.where)
	}},
	{name: "previous", doc: "the character before it", values: charNames, of: (*codePlace).previous},
	{name: "next", doc: "the character after it", values: charNames, of: (*codePlace).next},
	flag("year", "it may be a year", func(p *codePlace) bool { return isYear(p.tok.value) }),
	flag("word", "letters that may be a word", func(p *codePlace) bool {
		return p.tok.shape == letterCode && isWord(p.tok.value)
	}),
	flag("issue key", "letters, a dash and digits, as an issue key", func(p *codePlace) bool {
		return isTicket(p.tok.value)
	}),
	flag("mixed order", "a letter follows a digit", func(p *codePlace) bool { return isInterleaved(p.tok.value) }),
	flag("is after", "a word such as is follows it", func(p *codePlace) bool { return isCopula(p.followedBy()) }),
	flag("begins sentence", "no word precedes it in its sentence", (*codePlace).beginsSentence),
	flag("plural", "the noun before it is a plural", (*codePlace).afterPlural),
	flag("quoted", "it is in quotation marks, with words", (*codePlace).isQuoted),
	flag("colon above", "the line above ends with a colon", (*codePlace).colonAbove),
	{name: "nearest", doc: "the kind of the nearest word before it", values: kindNames[1:], of: func(p *codePlace) int {
		return int(p.nearest[0])
	}},
	{name: "second", doc: "the kind of the second word before it", values: kindNames[1:], of: func(p *codePlace) int {
		return int(p.nearest[1])
	}},
	{name: "context", doc: "words of another place or of a shop near candidates or in the subject", values: []string{"elsewhere", "shop", "both"}, of: func(p *codePlace) int {
		set := p.m.near | p.m.subject
		return int(set>>elsewhere&1 + set>>ofShop&1<<1)
	}},

	aloneSign("alone, line above", "words above it, if it begins a line", func(p *codePlace) uint32 { return p.around(-1, -1) }),
	aloneSign("alone, lines above", "words two or three lines above it", func(p *codePlace) uint32 { return p.around(-3, -2) }),
	aloneSign("alone, line below", "words below it", func(p *codePlace) uint32 { return p.around(1, 1) }),
	aloneSign("alone, lines below", "words two or three lines below it", func(p *codePlace) uint32 { return p.around(2, 3) }),
	aloneSign("alone, subject", "words of the subject, if it begins a line", (*codePlace).ofSubject),
	kindSign("subject", "words of the subject, if it is within a line", func(p *codePlace) uint32 {
		return p.ofSubject() * uint32(1-truth(p.isAlone()))
	}),
	{name: "others", doc: "the number of other candidates", values: countNames, of: func(p *codePlace) int {
		return count(len(p.m.values) - 1)
	}},
	{name: "rivals", doc: "the number of other candidates of its length", values: countNames, of: func(p *codePlace) int {
		return count(p.m.sameForm(p.tok.value) - 1)
	}},
	{name: "only", doc: "the only number of four to eight digits", values: []string{"alone", "within a line"}, of: (*codePlace).isOnly},
	{name: "only, short number", doc: "likewise, in a message with a short number such as minutes", values: []string{"alone", "within a line"}, of: func(p *codePlace) int {
		return p.isOnly() * truth(p.m.small)
	}},
	{name: "only, amounts", doc: "likewise, in a message with amounts", values: []string{"alone", "within a line"}, of: func(p *codePlace) int {
		return p.isOnly() * truth(p.m.currency || p.m.percent)
	}},
	{name: "order", doc: "its rank among the candidates of its part", values: countNames, of: func(p *codePlace) int {
		return count(p.rank)
	}},
	{name: "repeated", doc: "how often it occurs", values: countNames, of: func(p *codePlace) int {
		return count(p.value.places - 1)
	}},
	flag("in subject and body", "the subject and the body have it", func(p *codePlace) bool {
		return p.value.subject && p.value.body
	}),
	flag("called a code", "another place calls it a code", func(p *codePlace) bool {
		return p.value.nouns > truth(p.hasNoun())
	}),
	flag("called else", "another place calls it something else", func(p *codePlace) bool {
		return p.value.things > truth(p.hasThing())
	}),
	{name: "line", doc: "the lines before it", values: bucketNames, of: func(p *codePlace) int {
		return bucket(p.tok.line)
	}},
	{name: "lines left", doc: "the lines after it", values: bucketNames, of: func(p *codePlace) int {
		return bucket(len(p.t.lines) - 1 - p.tok.line)
	}},
	{name: "line length", doc: "the length of its line", values: bucketNames, of: func(p *codePlace) int {
		l := p.t.lines[p.tok.line]
		return bucket((l.end - l.start) / 10)
	}},
	flag("other numbers", "its line has another number", (*codePlace).besideNumber),
	flag("amount near", "its line has a currency sign", func(p *codePlace) bool {
		return hasCurrency(p.t.text[p.from:p.to])
	}),
}, wordSigns("before", "the nearest word before it: ", func(p *codePlace) *[kinds]distance { return &p.before })...),
	wordSigns("after", "the nearest word after it: ", func(p *codePlace) *[kinds]distance { return &p.after })...),
	[][2]string{
		{"shape", "position"}, {"shape", "link"}, {"length", "position"}, {"link", "position"},
		{"nearest", "link"}, {"before code", "link"}, {"before weak", "link"}, {"before open", "link"},
		{"before thing", "link"}, {"before qualifier", "link"},
		{"before verb", "link"}, {"before code", "shape"}, {"before verb", "shape"}, {"before code", "position"}, {"context", "nearest"}, {"year", "link"}, {"year", "position"},
		{"is after", "begins sentence"}, {"after code", "begins sentence"}, {"after code", "is after"}, {"begins sentence", "shape"}, {"colon above", "position"},
		{"before code", "before thing"}, {"before code", "before qualifier"}, {"before weak", "before qualifier"}, {"after verb", "begins sentence"},
		{"rivals", "position"}, {"before shop", "before code"}, {"part", "shape"}, {"others", "position"},
	})

// kindSign returns a sign whose values are the kinds of words.
func kindSign(name, doc string, of func(p *codePlace) uint32) sign[codePlace] {
	return sign[codePlace]{name: name, doc: doc, values: kindNames[1:], bits: of}
}

// aloneSign returns a kindSign that only holds for a token that begins a line.
func aloneSign(name, doc string, of func(p *codePlace) uint32) sign[codePlace] {
	return kindSign(name, doc, func(p *codePlace) uint32 {
		if !p.isAlone() {
			return 0
		}
		return of(p)
	})
}

// wordSigns returns a sign for each kind of words: its distance.
func wordSigns(side, doc string, of func(p *codePlace) *[kinds]distance) (list []sign[codePlace]) {
	for kind := codeNoun; kind < kinds; kind++ {
		list = append(list, sign[codePlace]{
			name: side + " " + kindNames[kind], doc: doc + kindNames[kind], values: distanceNames, pairs: int(isFar),
			of: func(p *codePlace) int { return int(of(p)[kind]) },
		})
	}
	return list
}

// noCodeSigns are the signs of a message without a code.
var noCodeSigns = newTable([]sign[codeMessage]{
	{name: "subject", doc: "words of the subject", values: kindNames[1:], bits: func(m *codeMessage) uint32 { return m.subject }},
	{name: "near", doc: "words near candidates", values: kindNames[1:], bits: func(m *codeMessage) uint32 { return m.near }},
	{name: "candidates", doc: "the number of candidates", values: bucketNames, of: func(m *codeMessage) int { return bucket(len(m.values)) }},
	{name: "length", doc: "the lines of the body", values: bucketNames, of: func(m *codeMessage) int { return bucket(m.lines) }},
	flag("always", "the message", func(*codeMessage) bool { return true }),
	flag("short number", "a number of one or two digits", func(m *codeMessage) bool { return m.small }),
	flag("currency", "a currency sign", func(m *codeMessage) bool { return m.currency }),
	flag("percent", "a percent sign", func(m *codeMessage) bool { return m.percent }),
	flag("reply", "the message is a reply", func(m *codeMessage) bool { return m.answer }),
	flag("forward", "the message is forwarded", func(m *codeMessage) bool { return m.forward }),
	flag("only text", "it has no HTML", func(m *codeMessage) bool { return !m.html }),
}, nil)

// Names of values.
var (
	shapeNames  = []string{"digits", "groups", "mixed", "short", "lower case", "letters", "words", "mixed case", "mixed groups", "prefix", "uneven groups", "split"}
	lengthNames = []string{"3", "4", "5", "6", "7", "8", "9", "10", "11", "12 or more"}
	countNames  = []string{"1", "2", "3 to 5", "more"}
	bucketNames = []string{"1", "2", "3", "4 to 7", "8 to 15", "16 to 31", "more"}
	charNames   = []string{"none", "space", "tab", "letter", "other script", "(", "[", "quote", "*", "#", "colon", "equals", "slash", "dot", "comma", "dash", "other"}
)

func truth(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// count returns the index in countNames of a number, plus one, or 0 for none.
func count(n int) int {
	switch {
	case n <= 2:
		return max(n, 0)
	case n <= 5:
		return 3
	}
	return 4
}

// bucket returns the index in bucketNames of a number, plus one, or 0 for none.
func bucket(n int) int {
	switch {
	case n <= 3:
		return max(n, 0)
	case n <= 7:
		return 4
	case n <= 15:
		return 5
	case n <= 31:
		return 6
	}
	return 7
}

func (p *codePlace) length() int {
	n := len(p.tok.value) - strings.Count(p.tok.value, "-")
	return min(max(n-2, 1), len(lengthNames))
}

func (p *codePlace) previous() int {
	if p.tok.start == p.t.lines[p.tok.line].start {
		return 1
	}
	return charOf(p.t.text[p.tok.start-1])
}

func (p *codePlace) next() int {
	if p.tok.end == p.t.lines[p.tok.line].end {
		return 1
	}
	return charOf(p.t.text[p.tok.end])
}

// charOf returns the index in charNames of a byte, plus one.
func charOf(c byte) int {
	switch {
	case c == '\r':
		return 1
	case c == ' ':
		return 2
	case c == '\t':
		return 3
	case plaintext.IsAlnum(c):
		return 4
	case c >= utf8.RuneSelf:
		return 5
	}
	if n := strings.IndexByte("([\"*#:=/.,-", c); n >= 0 {
		return 6 + n
	}
	return len(charNames)
}

// isAlone reports whether the token begins its line.
func (p *codePlace) isAlone() bool { return p.place == standsAlone || p.place == beginsLine }

// ofSubject returns the kinds of the words in the subject of a token in the body.
func (p *codePlace) ofSubject() uint32 {
	if p.where == inSubject {
		return 0
	}
	return p.m.subject
}

// isOnly reports whether the token is the only number of four to eight digits: 1
// if it is alone on its line, 2 if it is not, and 0 otherwise.
func (p *codePlace) isOnly() int {
	if n := len(p.tok.value); !p.tok.shape.isDigits() || n < 4 || n > 8 || p.m.long != 1 {
		return 0
	}
	return 2 - truth(p.place == standsAlone)
}

// besideNumber reports whether the line has another token next to this one.
func (p *codePlace) besideNumber() bool {
	return p.i > 0 && p.tokens[p.i-1].line == p.tok.line || p.i+1 < len(p.tokens) && p.tokens[p.i+1].line == p.tok.line
}

// afterPlural reports whether the noun before the token is a plural, in languages
// whose plural ends in "s": "1200 codes".
func (p *codePlace) afterPlural() bool {
	words := p.t.wordsOf(p.tok.line)
	for w := lastBefore(words, p.tok.start); w >= 0 && words[w].end > p.from; w-- {
		if 1<<words[w].kind&nouns != 0 {
			return isPlural(p.t.text[words[w].start:words[w].end])
		}
	}
	return false
}

func isPlural(noun string) bool {
	return len(noun) >= len("codes") && noun[len(noun)-1] == 's' && noun[len(noun)-2] != 's'
}

// quotationMarks are pairs of them. The first may also end a quotation.
var quotationMarks = [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}, {"『", "』"}}

// isQuoted reports whether quotation marks enclose the token and words before it, as in
// `a message such as "Your code is 123456"`.
func (p *codePlace) isQuoted() bool {
	before, after := p.t.text[p.from:p.tok.start], p.t.text[p.tok.end:p.to]
	for _, marks := range quotationMarks {
		at := strings.LastIndex(before, marks[0])
		if at < 0 || !strings.Contains(after, marks[1]) || marks[0] == marks[1] && strings.Count(before, marks[0])%2 == 0 {
			continue
		}
		if words := before[at+len(marks[0]):]; hasLetter(words) && !strings.Contains(words, marks[1]) {
			return true
		}
	}
	return false
}

// hasNoun reports whether a noun for a code is near the token in its sentence,
// and hasThing whether a word for something else is next to it.
func (p *codePlace) hasNoun() bool {
	for _, kind := range []wordKind{codeNoun, weakNoun, openNoun} {
		if d := p.before[kind]; d != 0 && d <= isNear {
			return true
		}
		if d := p.after[kind]; d != 0 && d <= isClose {
			return true
		}
	}
	return false
}

func (p *codePlace) hasThing() bool {
	d := p.before[otherThing]
	return d != 0 && d <= isClose && p.nearest[0] == otherThing
}

// isInterleaved reports whether a letter follows a digit of s.
func isInterleaved(s string) bool {
	at := strings.IndexAny(s, "0123456789")
	return at >= 0 && strings.Trim(s[at:], "0123456789-") != ""
}

// isTicket reports whether a token looks like an issue key: "SEC-4481".
func isTicket(token string) bool {
	first, last, ok := strings.Cut(token, "-")
	return ok && !plaintext.HasDigit(first) && strings.Trim(last, "0123456789") == ""
}

// hasCurrency reports whether a text has a currency sign.
func hasCurrency(text string) bool {
	if plaintext.IsASCII(text) {
		return strings.IndexByte(text, '$') >= 0
	}
	return strings.IndexFunc(text, isCurrency) >= 0
}

// isCurrency reports whether r is a currency sign.
func isCurrency(r rune) bool {
	return r == '$' || 0xa2 <= r && r <= 0xa5 || 0x20a0 <= r && r <= 0x20cf || r == '฿' || r == '￥'
}
