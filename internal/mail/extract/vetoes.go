package extract

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A veto rules out a place of a candidate, whatever its weights.
type veto struct {
	name  string
	holds func(p *codePlace) bool
}

// vetoes are what a code never is. TestVetoes has a message for each.
var vetoes = []veto{
	{"an amount with its unit", (*codePlace).isAmount},
	{"one of a list, as backup codes are", (*codePlace).isListed},
	{"a discount code", (*codePlace).isPromotion},
	{"in the address of a company", (*codePlace).isAddress},
}

// vetoOf returns the name of the veto that holds for a place, or "".
func (p *codePlace) vetoOf() string {
	for i := range vetoes {
		if vetoes[i].holds(p) {
			return vetoes[i].name
		}
	}
	return ""
}

// maxUnit is longer, in bytes, than any unit and the letter after it.
const maxUnit = 40

// isAmount reports whether a unit follows the token.
func (p *codePlace) isAmount() bool {
	l := p.t.lines[p.tok.line]
	rest := strings.TrimPrefix(p.t.text[p.tok.end:l.end], " ")
	return knownUnits().match(lowerInPlace(plaintext.Truncate(rest, maxUnit)), false) != nil
}

// isListed reports whether the token and two others next to it are alone on
// consecutive lines and have the same form.
func (p *codePlace) isListed() bool {
	if p.place != standsAlone {
		return false
	}
	like := func(n int) bool {
		j := p.i + n
		if j < 0 || j >= len(p.tokens) {
			return false
		}
		b := &p.tokens[j]
		return b.line-p.tok.line == n && sameForm(p.t.text[b.start:b.end], p.t.text[p.tok.start:p.tok.end]) && p.t.position(b) == standsAlone
	}
	return like(-1) && (like(-2) || like(1)) || like(1) && like(2)
}

// sameForm reports whether two different texts have their dashes and spaces in
// the same places, and both have letters or neither has.
func sameForm(a, b string) bool {
	if len(a) != len(b) || a == b || hasLetter(a) != hasLetter(b) {
		return false
	}
	for i := range len(a) {
		if plaintext.IsAlnum(a[i]) != plaintext.IsAlnum(b[i]) {
			return false
		}
	}
	return true
}

// isPromotion reports whether a word of a shop is in the sentence, and none of
// sign-in or security is in it or in the subject.
func (p *codePlace) isPromotion() bool {
	within := func(d distance) bool { return d != 0 && d <= isFar }
	if p.m.subject&(1<<qualifier) != 0 || within(p.before[qualifier]) || within(p.after[qualifier]) {
		return false
	}
	return within(p.before[ofShop]) && p.before[ofShop] <= isNear || within(p.after[ofShop])
}

// maxAddress is the maximum length, in bytes, of a line with an address.
const maxAddress = 2 * maxContext

// isAddress reports whether the token is in a postal address: after a state of the
// USA ("CA 94061"), or on a line with a company and several parts.
func (p *codePlace) isAddress() bool {
	if p.link != 0 || p.hasNoun() || p.before[useVerb] != 0 {
		return false
	}
	l := p.t.lines[p.tok.line]
	if before := p.t.text[l.start:p.tok.start]; p.tok.shape == digitCode && len(p.tok.value) == 5 && len(before) > 4 && before[len(before)-1] == ' ' {
		state := before[len(before)-3 : len(before)-1]
		if strings.Trim(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.HasSuffix(before[:len(before)-3], ", ") {
			return true
		}
	}
	line := p.t.text[l.start:l.end]
	if len(line) > maxAddress || strings.Count(line, ", ")+strings.Count(line, " · ")+strings.Count(line, " | ") < 2 {
		return false
	}
	return strings.Contains(line, "©") || namesCompany(line)
}
