package extract

import (
	"fmt"
	"slices"

	"github.com/postroom/postroom/internal/mail"
)

// Explanation is why a message has its codes, OTP and action link.
type Explanation struct {
	Extracted mail.Extraction
	OTP       string // why this is the OTP, or why there is none
	Link      string // why this is the action link, or why there is none
	Codes     []Candidate
	Links     []Candidate
}

// Candidate is what may be a code or a link, in the order of the message. The
// same value may occur several times.
type Candidate struct {
	Value    string
	Where    string // subject, text or html
	Score    int    // 0 if a sign rules it out
	Result   Result
	Evidence []Evidence
}

// Result is what became of a candidate.
type Result string

const (
	Dropped Result = "dropped"
	Listed  Result = "listed" // in codes or links
	Chosen  Result = "chosen" // the OTP or the action link
)

// Evidence is one sign for or against a candidate.
type Evidence struct {
	Sign   string
	Weight int // added to the score; 0 for a sign that rules the candidate out
}

// maxExplained limits the candidates of each kind in an Explanation.
const maxExplained = 100

// Explain extracts codes and links as [CodesAndLinks] does, and returns the
// evidence for each candidate. It takes linear time.
func Explain(subject, text, html string, lim mail.Limits) Explanation {
	var why Explanation
	why.Extracted, _ = extract(subject, text, html, lim, &why)
	for i := range why.Codes {
		c := &why.Codes[i]
		c.Result = resultOf(c.Value, why.Extracted.OTP, why.Extracted.Codes)
	}
	for i := range why.Links {
		l := &why.Links[i]
		l.Result = resultOf(l.Value, why.Extracted.ActionLink, why.Extracted.Links)
	}
	return why
}

func resultOf(value string, chosen *string, listed []string) Result {
	switch {
	case chosen != nil && *chosen == value:
		return Chosen
	case slices.Contains(listed, value):
		return Listed
	}
	return Dropped
}

// code records a candidate for a code. It does nothing without an Explanation.
func (why *Explanation) code(value, where string, score int, evidence []Evidence) {
	if why != nil && len(why.Codes) < maxExplained {
		why.Codes = append(why.Codes, Candidate{Value: value, Where: where, Score: score, Evidence: evidence})
	}
}

// link records a candidate for a link, likewise.
func (why *Explanation) link(l *foundLink, evidence []Evidence) {
	if why == nil || len(why.Links) == maxExplained {
		return
	}
	if len(evidence) == 0 {
		evidence = []Evidence{{"nothing asks to follow it", 0}}
	}
	where := "text"
	if l.inHTML {
		where = "html"
	}
	why.Links = append(why.Links, Candidate{Value: l.url, Where: where, Score: l.score, Evidence: evidence})
}

// decide records why there is an OTP or an action link, or none.
func (why *Explanation) decide(codes []scoredCode, links []foundLink) {
	if why == nil {
		return
	}
	switch {
	case len(codes) == 0:
		why.OTP = fmt.Sprintf("no candidate has %d points, which a code needs", codeScore)
	case codes[0].score < otpScore:
		why.OTP = fmt.Sprintf("%s has %d points, and an OTP needs %d", codes[0].value, codes[0].score, otpScore)
	case len(codes) > 1 && codes[1].score >= codes[0].score:
		why.OTP = fmt.Sprintf("%s and %s both have %d points", codes[0].value, codes[1].value, codes[0].score)
	default:
		why.OTP = fmt.Sprintf("%s has the most points: %d", codes[0].value, codes[0].score)
	}
	switch {
	case len(links) == 0:
		why.Link = "the message has no link outside its footer"
	case links[0].action && links[0].score < actionScore:
		why.Link = "the only link, with a word of action and a random token in its address"
	case links[0].action:
		why.Link = fmt.Sprintf("the link asks to act and has the most points: %d", links[0].score)
	default:
		why.Link = fmt.Sprintf("no link asks to act and has %d points", actionScore)
	}
}

// note records a sign for the candidate that is scored. It does nothing without
// an Explanation.
func (s *codeScorer) note(sign string, weight int) {
	if s.why != nil {
		s.evidence = append(s.evidence, Evidence{sign, weight})
	}
}

// ruledOut records a sign that rules a candidate out, and returns 0.
func (s *codeScorer) ruledOut(sign string) int {
	s.note(sign, 0)
	return 0
}
