package reply

import (
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mailtest"
)

// FuzzHTMLReply finds the reply text of any HTML (M13).
func FuzzHTMLReply(f *testing.F) {
	for _, s := range mailtest.OddHTML {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, html string) {
		if utf8.ValidString(html) {
			mailtest.CheckText(t, "reply", TextOfPage(htmltext.Read(html, 0, htmltext.WithMarks, nil), nil))
		}
	})
}
