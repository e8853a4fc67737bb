package htmltext

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// pageWriter writes the text of a page. It folds white space, puts blocks on
// lines of their own, separates table cells by tabs and marks quotations as in
// plain text.
type pageWriter struct {
	mode   Mode // what it adds to the visible text
	buf    []byte
	gap    gap   // white space before the next word
	quotes []int // the number of open elements below each open quotation
}

// gap is the white space between two words.
type gap int

const (
	noGap gap = iota
	spaceGap
	cellGap
	lineGap
	paragraphGap
)

func (w *pageWriter) need(g gap) { w.gap = max(w.gap, g) }

// breakFor records the white space for the start or end of an element.
func (w *pageWriter) breakFor(tag atom.Atom) {
	switch {
	case tag == atom.Br:
		w.lineBreak()
	case tag == atom.Td || tag == atom.Th:
		w.need(cellGap)
	case isParagraph(tag):
		w.need(paragraphGap)
	case isBlock(tag):
		w.need(lineGap)
	}
}

// lineBreak ends a line; two in a row leave an empty line.
func (w *pageWriter) lineBreak() {
	if w.gap == lineGap {
		w.gap = paragraphGap
		return
	}
	w.need(lineGap)
}

// text writes text. Preformatted text keeps its line breaks.
func (w *pageWriter) text(s []byte, pre bool) {
	for len(s) > 0 {
		if c := s[0]; c < utf8.RuneSelf {
			n := plainRun(s)
			if n > 0 {
				w.startWord()
				w.buf = append(w.buf, s[:n]...)
				s = s[n:]
				continue
			}
			if pre && c == '\n' {
				w.lineBreak()
			} else if c != 0 {
				w.need(spaceGap)
			}
			s = s[1:]
			continue
		}
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		switch {
		case unicode.IsSpace(r) || r == '\u2028' || r == '\u2029':
			w.need(spaceGap)
		case (r == '\u200c' || r == '\u200d') && w.gap == noGap && len(w.buf) > 0:
			w.buf = utf8.AppendRune(w.buf, r) // joins letters of some scripts
		case plaintext.IsInvisible(r):
		default:
			w.startWord()
			w.buf = utf8.AppendRune(w.buf, r)
		}
	}
}

// plainRun returns the length of the ASCII word at the start of s.
func plainRun(s []byte) int {
	n := 0
	for n < len(s) && s[n] > ' ' && s[n] < 0x7f {
		n++
	}
	return n
}

// startWord writes the gap before a word.
func (w *pageWriter) startWord() {
	switch {
	case len(w.buf) == 0:
		w.startLine()
	case w.gap == spaceGap:
		w.buf = append(w.buf, ' ')
	case w.gap == cellGap:
		w.buf = append(w.buf, '\t')
	case w.gap == lineGap:
		w.buf = append(w.buf, '\n')
		w.startLine()
	case w.gap == paragraphGap:
		w.buf = append(w.buf, '\n')
		w.startLine()
		w.buf = append(bytes.TrimRight(w.buf, " "), '\n')
		w.startLine()
	}
	w.gap = noGap
}

// maxQuoteMarks is the maximum number of quotation marks on a line.
const maxQuoteMarks = 10

func (w *pageWriter) startLine() {
	for range min(len(w.quotes), maxQuoteMarks) {
		w.buf = append(w.buf, "> "...)
	}
}

// openQuote opens a quotation if a <blockquote> is marked as one or follows a colon. With
// marks, "The manual says:" introduces a quotation that belongs to the text.
func (w *pageWriter) openQuote(quoted bool, below int) {
	if quoted || w.endsWithColon() && (w.mode != WithMarks || w.endsWithDate()) {
		w.quotes = append(w.quotes, below)
	}
}

// closeQuotes closes the quotations above the first n open elements.
func (w *pageWriter) closeQuotes(n int) {
	for len(w.quotes) > 0 && w.quotes[len(w.quotes)-1] >= n {
		w.quotes = w.quotes[:len(w.quotes)-1]
	}
}

// mark writes a marker line.
func (w *pageWriter) mark(m string) {
	w.need(lineGap)
	w.startWord()
	w.buf = append(w.buf, m...)
	w.need(lineGap)
}

// endsWithColon reports whether the text ends with a colon, as in "X wrote:".
func (w *pageWriter) endsWithColon() bool {
	return len(w.buf) > 0 && w.buf[len(w.buf)-1] == ':'
}

// maxAttribution is the maximum length of the line before a quotation that may
// contain its date, in bytes.
const maxAttribution = 200

// endsWithDate reports whether the last paragraph contains a digit or an
// address, as in "On 2 May, X wrote:".
func (w *pageWriter) endsWithDate() bool {
	end := w.buf[max(0, len(w.buf)-maxAttribution):]
	end = end[bytes.LastIndex(end, []byte("\n\n"))+1:]
	return bytes.ContainsAny(end, "@0123456789")
}
