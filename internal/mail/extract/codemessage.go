package extract

import (
	"strings"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/reply"
)

// maxPlaces limits the candidates of one part of a message, and maxRepeats those with the
// same value. Real messages have far fewer.
const maxPlaces, maxRepeats = 256, 16

// codeMessage is what the signs of all candidates of a message share.
type codeMessage struct {
	subject         uint32 // kinds of the words in the subject
	near            uint32 // kinds of the words near candidates
	answer, forward bool   // the message is a reply or a forward
	html            bool
	small           bool // it has a number of one or two digits
	currency        bool
	percent         bool
	lines           int // of the body
	long            int // the number of candidates with four to eight digits
	forms           [2][maxForm]int
	values          map[string]*codeValue
	places          []*codePlace
	vetoed          []*codePlace // they do not count for the signs
}

// maxForm is more than the length of any candidate with rivals of its form.
const maxForm = 16

// codeValue is a candidate with what its places have in common.
type codeValue struct {
	value         string
	order         int
	places        int
	nouns, things int // places that call it a code, or something else
	subject, body bool
}

// readCodes finds the candidates for codes of a message.
func readCodes(subject, text string, page *htmltext.Page, budget *cpubudget.Budget) *codeMessage {
	m := &codeMessage{html: page != nil, values: map[string]*codeValue{}}
	m.answer = reply.IsAnswer(subject)
	m.forward = !m.answer && reply.HasReplyMark(subject)
	head := newCodeText(subject)
	for i := range head.lines {
		m.subject |= head.kindsOf(i)
	}
	m.read(head, inSubject)
	m.readBody(text, inText, budget)
	if page != nil {
		m.readBody(string(page.Text), inHTML, budget)
	}
	for _, v := range m.values {
		n, digits := min(len(v.value), maxForm-1), isNumber(v.value)
		m.forms[truth(digits)][n]++
		if digits && n >= 4 && n <= 8 {
			m.long++
		}
	}
	for _, p := range m.places {
		m.near |= p.t.kindsOf(p.tok.line) | p.around(-1, -1) | p.around(1, 1)
	}
	return m
}

// readBody reads a part of the body. It leaves out the quoted part of a reply,
// and reads that of a forward.
func (m *codeMessage) readBody(body string, where textPart, budget *cpubudget.Budget) {
	if body == "" {
		return
	}
	switch {
	case m.answer:
		body = reply.Text(body, budget)
	case m.forward && strings.Contains(body, "\n>"):
		body = unquoted(body)
	}
	t := newCodeText(body)
	t.budget = budget
	m.lines = max(m.lines, len(t.lines))
	m.currency = m.currency || hasCurrency(t.text)
	m.percent = m.percent || strings.Contains(t.text, "%")
	m.read(t, where)
}

// read adds the candidates of a text.
func (m *codeMessage) read(t *codeText, where textPart) {
	tokens := t.findTokens()
	rank, first := 0, len(m.places)+len(m.vetoed)
	for i := range tokens {
		tok := &tokens[i]
		if tok.value == "" {
			m.small = m.small || tok.end-tok.start <= 2 && where != inSubject
			continue
		}
		if len(m.places)+len(m.vetoed)-first == maxPlaces || t.budget.Spent() {
			break
		}
		key := strings.ToUpper(strings.ReplaceAll(tok.value, "-", ""))
		v := m.values[key]
		if v != nil && v.places >= maxRepeats {
			continue
		}
		p := newPlace(m, t, tokens, i, where)
		p.place = t.position(tok)
		if p.veto = p.vetoOf(); p.veto != "" {
			m.vetoed = append(m.vetoed, p)
			continue
		}
		if v == nil {
			v = &codeValue{value: tok.value, order: len(m.values)}
			m.values[key] = v
			rank++
		}
		v.places++
		v.subject = v.subject || where == inSubject
		v.body = v.body || where != inSubject
		v.nouns += truth(p.hasNoun())
		v.things += truth(p.hasThing())
		p.value, p.rank = v, rank-1
		m.places = append(m.places, p)
	}
}

// unquoted returns a text without the marks of quoted lines.
func unquoted(body string) string {
	out := make([]byte, 0, len(body))
	for line := range strings.Lines(body) {
		out = append(out, strings.TrimLeft(line, "> ")...)
	}
	return string(out)
}

// sameForm returns the number of candidates with the length of value, all digits
// or not.
func (m *codeMessage) sameForm(value string) int {
	return m.forms[truth(isNumber(value))][min(len(value), maxForm-1)]
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
