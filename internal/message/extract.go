package message

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/cpubudget"
)

// Extracted holds the codes and links that a mail offers to its reader.
type Extracted struct {
	// OTP is the one code that is meant to be typed in, nil when unsure: a
	// wrong code costs more than none.
	OTP *string `json:"otp"`
	// Codes are all candidates, best first.
	Codes []string `json:"codes"`
	// Links are the http and https links of the mail, best first, without
	// those that every mail has: to unsubscribe, to set preferences, to view
	// it in a browser, to privacy notices and help pages.
	Links []string `json:"links"`
	// ActionLink is the one link that is meant to be followed, nil when unsure.
	ActionLink *string `json:"action_link"`
}

const (
	maxCodes   = 20
	maxSubject = 2 << 10 // bytes of the subject that are read
)

// Extract finds the codes and links in what a reader sees of a mail: its
// subject, its plain text and its HTML, of which either may be empty. A link
// is never fetched.
func Extract(subject, text, html string) Extracted {
	found, _ := extract(subject, text, html, DefaultLimits())
	return found
}

// Extract is [Extract] of the message.
func (m *Message) Extract(lim Limits) Extracted {
	found, _ := extract(m.Subject, m.Text, m.HTML, lim)
	return found
}

// extract also returns the page that the HTML shows, nil without HTML.
func extract(subject, text, html string, lim Limits) (Extracted, *page) {
	subject = head(subject, maxSubject)
	var p *page
	visible, preview := "", ""
	if html != "" {
		p = readPage(html, lim.Links, onlySeen, lim.Budget)
		visible, preview = string(p.text), strings.ToValidUTF8(string(p.preview), "")
	}
	codes := codesOf(subject, text, visible, lim.Budget)
	if len(codes) == 0 && hasDigit(preview) {
		codes = codesOf(subject, preview, "", lim.Budget)
	}
	if len(codes) == 0 {
		codes = loneCode(subject, cmp.Or(text, visible))
	}
	found := Extracted{Codes: []string{}, Links: []string{}, OTP: bestCode(codes)}
	for _, c := range codes[:min(len(codes), maxCodes)] {
		found.Codes = append(found.Codes, c.value)
	}
	links := linksOf(subject, text, p, lim)
	for _, l := range links {
		found.Links = append(found.Links, l.url)
	}
	if len(links) > 0 && links[0].action {
		found.ActionLink = &links[0].url
	}
	return found, p
}

// codesOf returns the codes of a mail, each once, best first.
func codesOf(subject, text, visible string, budget *cpubudget.Budget) []scoredCode {
	var hint subjectHint
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
			}
			hint.elsewhere = hint.elsewhere || w.opens
		}
	}
	scorer := codeScorer{t: head, tokens: head.findTokens(), hint: hint, inSubject: true}
	inSubject := scorer.codes()
	all := inSubject
	for _, body := range []string{text, visible} {
		if body == "" {
			continue
		}
		all = append(all, codesIn(body, hint, budget)...)
	}
	return mergeCodes(all, len(inSubject))
}

// codesIn returns the codes of a text. Of several, those count that the mail
// says itself, not those of an older one that it quotes.
func codesIn(body string, hint subjectHint, budget *cpubudget.Budget) []scoredCode {
	codes := scanCodes(body, hint, budget)
	if len(codes) < 2 {
		return codes
	}
	reply := replyText(body, budget)
	if len(reply) == len(strings.TrimSpace(body)) {
		return codes // it quotes nothing
	}
	if own := scanCodes(reply, hint, budget); len(own) > 0 {
		return own
	}
	return codes
}

func scanCodes(body string, hint subjectHint, budget *cpubudget.Budget) []scoredCode {
	t := newCodeText(body)
	t.budget = budget
	scorer := codeScorer{t: t, tokens: t.findTokens(), hint: hint}
	return scorer.codes()
}

// mergeCodes keeps each code once, with its highest score. Those that stand in
// the subject, the first n, and again in the body count more.
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

// bestCode returns the code that is surely the one, or nil.
func bestCode(codes []scoredCode) *string {
	if len(codes) == 0 || codes[0].score < otpScore || len(codes) > 1 && codes[1].score >= codes[0].score {
		return nil
	}
	return &codes[0].value
}
