package compose

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/mailtest"
)

// FuzzForwardHTML forwards any HTML (M13).
func FuzzForwardHTML(f *testing.F) {
	for _, s := range mailtest.OddHTML {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, html string) {
		if utf8.ValidString(html) {
			mailtest.CheckText(t, "HTML", strings.ReplaceAll(ForwardHTML("", ForwardedHeader{}, html), "\x00", ""))
		}
	})
}
