package handlers

import (
	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/store"
)

// explainMessage returns the evidence for the codes and links of a received
// message, or nothing for a sent or an expired one.
func explainMessage(m store.Message) (out gen.OptExtractedExplanation, err error) {
	if m.Direction != store.DirectionIn || m.ExpiredAt != nil || m.Content == nil {
		return out, nil
	}
	body, err := bodyOf(*m.Content, m.Direction)
	if err != nil {
		return out, err
	}
	if body.FromHTML {
		body.Text = ""
	}
	lim := mail.DefaultLimits()
	lim.Budget = cpubudget.New(readBudget)
	var why extract.Explanation
	lim.Budget.Run(func() { why = extract.Explain(m.Subject, body.Text, body.HTML, lim) })
	out.SetTo(gen.ExtractedExplanation{Otp: why.OTP, ActionLink: why.Link, Codes: candidatesToAPI(why.Codes), Links: candidatesToAPI(why.Links)})
	return out, nil
}

func candidatesToAPI(in []extract.Candidate) []gen.ExtractedCandidate {
	return mapped(in, func(c extract.Candidate) gen.ExtractedCandidate {
		return gen.ExtractedCandidate{
			Value: c.Value, Where: c.Where, Score: c.Score, Result: string(c.Result), Evidence: mapped(c.Evidence, func(e extract.Evidence) gen.ExtractedEvidence {
				return gen.ExtractedEvidence{Sign: e.Sign, Weight: e.Weight}
			}),
		}
	})
}
