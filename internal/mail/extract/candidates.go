package extract

import "github.com/postroom/postroom/internal/mail"

// Candidate is a place of what may be a code or the action link.
type Candidate struct {
	Value string
	Where string   // subject, text, html or preview
	Signs []uint16 // numbers of the signs that hold, see [SignNames]
	Veto  string   // what rules it out, or ""
}

// Candidates are the candidates of a message, in its order.
type Candidates struct {
	Codes, Links   []Candidate
	NoCode, NoLink []uint16 // the signs of a message without a code, or without an action link
}

// Read returns the candidates of a message and their signs, for training and to
// see why a message has its codes. code reports that it has a code to type.
func Read(subject, text, html string, code bool) (c Candidates) {
	in := readMessage(subject, text, html, mail.DefaultLimits())
	in.links.code = code
	for _, p := range in.codes.places {
		c.Codes = append(c.Codes, Candidate{p.value.value, textParts[p.where-1], codeSigns.of(p, nil), ""})
	}
	for _, p := range in.codes.vetoed {
		c.Codes = append(c.Codes, Candidate{p.tok.value, textParts[p.where-1], nil, p.veto})
	}
	for _, l := range in.links.links {
		where := textParts[inText-1]
		if l.inHTML {
			where = textParts[inHTML-1]
		}
		veto := l.value.veto
		if veto == "" {
			veto = l.neverAction()
		}
		c.Links = append(c.Links, Candidate{l.url, where, linkSigns.of(l, nil), veto})
	}
	c.NoCode, c.NoLink = noCodeSigns.of(in.codes, nil), noLinkSigns.of(in.links, nil)
	return c
}

// Weights returns the weight of each sign of a kind, by number.
func (m *Model) Weights(kind string) []float64 {
	list := m.lists()[kind]
	if list == nil {
		return nil
	}
	weights := make([]float64, 0, len(*list))
	for _, w := range *list {
		weights = append(weights, float64(w)/one)
	}
	return weights
}
