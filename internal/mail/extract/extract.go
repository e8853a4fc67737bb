// Package extract finds verification codes and links in a message. It collects
// candidates, and for each the signs that hold (codesigns.go, linksigns.go). A
// model with trained weights (weights.txt) chooses among them, or none. The
// words that signs look for are in 75 languages (words/).
package extract

import (
	"cmp"
	"slices"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

const (
	maxCodes   = 20
	maxSubject = 2 << 10 // bytes of the subject to read
)

// How much a candidate must lead by. A lead of one means that the model takes it
// for e times as likely.
const (
	listLead = one * 2 / 5 // a code of Codes, over "no code here"
	listLag  = 2 * one     // a code of Codes may lag behind the best one by this much
	otpLead  = one * 3 / 5 // the OTP, over "no code here"
	linkLead = 0           // the action link, over "no action link here"
)

// CodesAndLinks finds the codes and links in the subject, plain text and HTML
// of a message. Text or HTML may be empty. It never fetches a link.
func CodesAndLinks(subject, text, html string) mail.Extraction {
	return trained().CodesAndLinks(subject, text, html)
}

// CodesAndLinks is [CodesAndLinks] with the weights of m.
func (m *Model) CodesAndLinks(subject, text, html string) mail.Extraction {
	found, _ := m.extract(subject, text, html, mail.DefaultLimits())
	return found
}

// extract also returns the page of the HTML, or nil if html is empty.
func (m *Model) extract(subject, text, html string, lim mail.Limits) (mail.Extraction, *htmltext.Page) {
	in := readMessage(subject, text, html, lim)
	found := mail.Extraction{Codes: []string{}, Links: []string{}}
	m.addCodes(&found, in.codes)
	in.links.code = found.OTP != nil
	m.addLinks(&found, in.links)
	return found, in.page
}

// message is a message with its candidates.
type message struct {
	codes *codeMessage
	links *linkMessage
	page  *htmltext.Page // nil without HTML
}

func readMessage(subject, text, html string, lim mail.Limits) (in message) {
	subject = plaintext.Truncate(subject, maxSubject)
	if html != "" {
		mode := htmltext.OnlyVisible
		if text == "" {
			mode |= htmltext.WithTargets | htmltext.WithMarks
		}
		in.page = htmltext.Read(html, lim.Links, mode, lim.Budget)
	}
	text = joinLinks(text, in.page, lim.Budget)
	in.codes = readCodes(subject, text, in.page, lim.Budget)
	in.links = readLinks(subject, text, in.page, lim)
	in.links.codes = in.codes.subject
	return in
}

// scored is a candidate with the score of its best place.
type scored struct {
	value string
	order int
	score int
}

// byScore orders candidates, best first.
func byScore(a, b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.order, b.order))
}

// addCodes adds the codes of a message, best first.
func (m *Model) addCodes(found *mail.Extraction, in *codeMessage) {
	if len(in.places) == 0 {
		return
	}
	at := make([]int, len(in.values)) // index in list plus one, by order
	list := make([]scored, 0, len(in.values))
	var numbers []uint16
	for _, p := range in.places {
		numbers = codeSigns.of(p, numbers[:0])
		list = keepBest(list, at, scored{p.value.value, p.value.order, sum(m.code, numbers)})
	}
	slices.SortFunc(list, byScore)
	none := sum(m.noCode, noCodeSigns.of(in, numbers[:0]))
	for _, c := range list[:min(len(list), maxCodes)] {
		if c.score < none+listLead || c.score < list[0].score-listLag {
			break
		}
		found.Codes = append(found.Codes, c.value)
	}
	if len(found.Codes) == 1 && list[0].score >= none+otpLead {
		found.OTP = &found.Codes[0]
	}
}

// keepBest adds a candidate to list, or raises its score.
func keepBest(list []scored, at []int, c scored) []scored {
	if i := at[c.order] - 1; i >= 0 {
		list[i].score = max(list[i].score, c.score)
		return list
	}
	at[c.order] = len(list) + 1
	return append(list, c)
}

// addLinks adds the links of a message, the action link first. It leaves out
// footer links.
func (m *Model) addLinks(found *mail.Extraction, in *linkMessage) {
	if len(in.links) == 0 {
		return
	}
	at := make([]int, len(in.values))
	list := make([]scored, 0, len(in.values))
	never := make([]bool, len(in.values))
	var numbers []uint16
	for _, l := range in.links {
		if l.value.veto != "" {
			continue
		}
		never[l.value.order] = never[l.value.order] || l.neverAction() != ""
		numbers = linkSigns.of(l, numbers[:0])
		list = keepBest(list, at, scored{l.url, l.value.order, sum(m.link, numbers)})
	}
	none := sum(m.noLink, noLinkSigns.of(in, numbers[:0]))
	slices.SortStableFunc(list, func(a, b scored) int {
		if never[a.order] != never[b.order] {
			return truth(never[a.order]) - truth(never[b.order])
		}
		return byScore(a, b)
	})
	for _, l := range list {
		found.Links = append(found.Links, l.value)
	}
	if len(list) > 0 && !never[list[0].order] && list[0].score >= none+linkLead {
		found.ActionLink = &found.Links[0]
	}
}
