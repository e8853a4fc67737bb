package extract

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Limits for messages in which a number alone on its line counts as a code
// without a word that says so.
const (
	maxLoneText  = 1500 // bytes
	maxLoneLines = 14
	loneDigits   = 6
)

// loneCode finds the code of a message in an unsupported language: a short text
// with one six-digit number on a line of its own, no other long number, and no
// word or sign of an order, an amount or a shop. The code counts as an OTP only
// if the text also has a short number, such as the validity in minutes, or if the
// subject is about sign-in or security.
func loneCode(subject, body string) []scoredCode {
	if len(body) > maxLoneText || !plaintext.HasDigit(body) || plaintext.HasDigit(subject) {
		return nil
	}
	t := newCodeText(subject + "\n" + body)
	if len(t.lines) < 3 || len(t.lines) > maxLoneLines || strings.ContainsAny(t.text, "$€£¥₹₽₩₺₫฿%#") || strings.Contains(t.text, "://") {
		return nil
	}
	for i := range t.lines {
		for _, w := range t.wordsOf(i) {
			switch w.kind {
			case otherThing, ofShop, elsewhere:
				return nil
			}
		}
	}
	s := codeScorer{t: t, tokens: t.findTokens()}
	found, sure := -1, false
	for _, w := range t.wordsOf(0) {
		sure = sure || w.kind == qualifier && subject != ""
	}
	for i := range s.tokens {
		tok := &s.tokens[i]
		switch {
		case (tok.shape == digitCode || tok.shape == groupCode) && len(tok.value) == loneDigits && s.standsAlone(tok) && tok.line > 1 && found < 0:
			found = i
		case tok.value != "":
			return nil
		case tok.end-tok.start <= 2:
			sure = true
		}
	}
	if found < 0 {
		return nil
	}
	score := codeScore
	if sure {
		score = otpScore
	}
	return []scoredCode{{s.tokens[found].value, score}}
}
