package htmltext

import (
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/mailtest"
)

// FuzzHTMLText makes text of any html (M13).
func FuzzHTMLText(f *testing.F) {
	for _, s := range mailtest.OddHTML {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, html string) {
		if !utf8.ValidString(html) {
			return
		}
		text, visible := Text(html), Read(html, 0, OnlyVisible, nil).Plain()
		mailtest.CheckText(t, "text", text)
		mailtest.CheckText(t, "visible text", visible)
		// Each line break may bring the marks of the quotations around it.
		if most := len(html) * (2*maxQuoteMarks + 2); len(visible) > most || len(text) > most+len(html) {
			t.Errorf("%d bytes became %d and %d", len(html), len(text), len(visible))
		}
	})
}
