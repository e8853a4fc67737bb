package extract

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

// TestExplain checks that Explain returns what CodesAndLinks returns, that the
// weights of a candidate sum to its score, and that it names the winner.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, r := range readLabelled(t) {
		text, page := r.build(t)
		found := CodesAndLinks(r.subject, text, page)
		why := Explain(r.subject, text, page, mail.DefaultLimits())
		if got, want := strings.Join(why.Extracted.Codes, " "), strings.Join(found.Codes, " "); got != want {
			t.Errorf("%s/%s: codes %q, want %q", r.file, r.name, got, want)
		}
		chosen := 0
		for _, c := range append(why.Codes, why.Links...) {
			sum := 0
			for _, e := range c.Evidence {
				sum += e.Weight
			}
			if sum != c.Score && c.Score != 0 || len(c.Evidence) == 0 {
				t.Errorf("%s/%s: %s has %d points, its evidence %v", r.file, r.name, c.Value, c.Score, c.Evidence)
			}
			if c.Result == Chosen {
				chosen++
			}
		}
		if (found.OTP != nil || found.ActionLink != nil) != (chosen > 0) {
			t.Errorf("%s/%s: %d candidates are chosen", r.file, r.name, chosen)
		}
		if found.OTP != nil && !strings.Contains(why.OTP, *found.OTP) || why.OTP == "" || why.Link == "" {
			t.Errorf("%s/%s: the reasons are %q and %q", r.file, r.name, why.OTP, why.Link)
		}
	}
}
