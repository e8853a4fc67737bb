// Package extract finds verification codes and links in a message. It scores
// candidates by the words near them, in 75 languages (words/).
package extract

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

const (
	maxCodes   = 20
	maxSubject = 2 << 10 // bytes of the subject to read
	maxKeys    = 4       // issue keys of the subject
)

// CodesAndLinks finds the codes and links in the subject, plain text and HTML
// of a message. Text or HTML may be empty. It never fetches a link.
func CodesAndLinks(subject, text, html string) mail.Extraction {
	found, _ := extract(subject, text, html, mail.DefaultLimits(), nil)
	return found
}

// extract also returns the page of the HTML, or nil if html is empty. It records
// its evidence in why, unless that is nil.
func extract(subject, text, html string, lim mail.Limits, why *Explanation) (mail.Extraction, *htmltext.Page) {
	subject = plaintext.Truncate(subject, maxSubject)
	var p *htmltext.Page
	visible, preview := "", ""
	if html != "" {
		p = htmltext.Read(html, lim.Links, htmltext.OnlyVisible, lim.Budget)
		visible, preview = string(p.Text), strings.ToValidUTF8(string(p.Preview), "")
	}
	text = joinLinks(text, p, lim.Budget)
	codes := codesOf(subject, text, visible, lim.Budget, why)
	if len(codes) == 0 && plaintext.HasDigit(preview) {
		codes = codesOf(subject, preview, "", lim.Budget, why)
	}
	if len(codes) == 0 {
		codes = loneCode(subject, cmp.Or(text, visible))
		for _, c := range codes {
			why.code(c.value, "text", c.score, []Evidence{{"the only long number, on a line of its own in a short message", c.score}})
		}
	}
	found := mail.Extraction{Codes: []string{}, Links: []string{}, OTP: bestCode(codes)}
	for _, c := range codes[:min(len(codes), maxCodes)] {
		found.Codes = append(found.Codes, c.value)
	}
	links := linksOf(subject, text, p, lim, why)
	why.decide(codes, links)
	for _, l := range links {
		found.Links = append(found.Links, l.url)
	}
	if len(links) > 0 && links[0].action {
		found.ActionLink = &links[0].url
	}
	return found, p
}

// codesOf returns the unique codes of a message, best first.
func codesOf(subject, text, visible string, budget *cpubudget.Budget, why *Explanation) []scoredCode {
	hint := subjectHint{answer: reply.IsAnswer(subject)}
	hint.forward = !hint.answer && reply.HasReplyMark(subject)
	head := newCodeText(subject)
	for i := range head.lines {
		for _, w := range head.wordsOf(i) {
			switch w.kind {
			case codeNoun, weakNoun:
				hint.noun = true
			case openNoun:
				hint.noun, hint.qualifier = true, true
			case qualifier:
				hint.qualifier = true
			case ofShop:
				hint.shop = true
			case otherThing:
				hint.thing = true
			}
			hint.elsewhere = hint.elsewhere || w.opens
		}
	}
	scorer := codeScorer{t: head, tokens: head.findTokens(), hint: hint, inSubject: true, why: why, where: "subject"}
	inSubject := scorer.codes()
	for i := range scorer.tokens {
		if key := scorer.tokens[i].value; isTicket(key) && len(hint.keys) < maxKeys && !slices.ContainsFunc(inSubject, func(c scoredCode) bool { return c.value == key }) {
			hint.keys = append(hint.keys, key)
		}
	}
	all := inSubject
	for _, body := range []struct{ where, text string }{{"text", text}, {"html", visible}} {
		if body.text == "" {
			continue
		}
		all = append(all, codesIn(body.text, body.where, hint, budget, why)...)
	}
	return mergeCodes(all, len(inSubject))
}

// codesIn returns the codes of a text. It prefers those outside quoted messages,
// and ignores the others in a reply.
func codesIn(body, where string, hint subjectHint, budget *cpubudget.Budget, why *Explanation) []scoredCode {
	codes := scanCodes(body, where, hint, budget, why)
	if len(codes) == 0 && hint.forward && strings.Contains(body, "\n>") {
		return scanCodes(unquoted(body), where, hint, budget, why)
	}
	if len(codes) == 0 || len(codes) == 1 && !hint.answer {
		return codes
	}
	reply := reply.Text(body, budget)
	if len(reply) == len(strings.TrimSpace(body)) {
		return codes // no quoted text
	}
	if own := scanCodes(reply, where, hint, budget, nil); len(own) > 0 || hint.answer {
		return own
	}
	return codes
}

// unquoted returns a text without the marks of quoted lines.
func unquoted(body string) string {
	out := make([]byte, 0, len(body))
	for line := range strings.Lines(body) {
		out = append(out, strings.TrimLeft(line, "> ")...)
	}
	return string(out)
}

func scanCodes(body, where string, hint subjectHint, budget *cpubudget.Budget, why *Explanation) []scoredCode {
	t := newCodeText(body)
	t.budget = budget
	scorer := codeScorer{t: t, tokens: t.findTokens(), hint: hint, why: why, where: where}
	return scorer.codes()
}

// mergeCodes keeps each code once, with its highest score. A code in the
// subject, one of the first n, scores higher if the body repeats it.
func mergeCodes(all []scoredCode, n int) []scoredCode {
	var merged []scoredCode
	at := map[string]int{}
	for i, c := range all {
		key := strings.ToUpper(strings.ReplaceAll(c.value, "-", ""))
		j, known := at[key]
		if !known {
			at[key] = len(merged)
			merged = append(merged, c)
			continue
		}
		if j < n && i >= n {
			c.score++
		}
		merged[j].score = max(merged[j].score, c.score)
	}
	slices.SortStableFunc(merged, func(a, b scoredCode) int { return cmp.Compare(b.score, a.score) })
	return merged
}

// bestCode returns the code that is certainly the OTP, or nil.
func bestCode(codes []scoredCode) *string {
	if len(codes) == 0 || codes[0].score < otpScore || len(codes) > 1 && codes[1].score >= codes[0].score {
		return nil
	}
	return &codes[0].value
}
