package reply

import (
	"strings"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail/htmltext"
)

// TextOfPage is [Text] for the page of an HTML message, read with marks. It also detects
// quotations by the elements that email clients use, in any language.
func TextOfPage(page *htmltext.Page, budget *cpubudget.Budget) string {
	above, below, found := strings.Cut(page.Marked(), htmltext.QuoteMark+"\n")
	above = withoutMarks(strings.Replace(above, htmltext.SignatureMark+"\n", "-- \n", 1))
	below = withoutMarks(below)
	if !found || Text(above, budget) == "" {
		return Text(above+below, budget)
	}
	return Text(above+"-----Original Message-----\n"+below, budget)
}

// withoutMarks removes the marker lines from a text.
func withoutMarks(text string) string {
	return strings.NewReplacer(htmltext.QuoteMark+"\n", "", htmltext.SignatureMark+"\n", "", htmltext.QuoteMark, "", htmltext.SignatureMark, "").Replace(text)
}
