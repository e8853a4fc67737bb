package mailhtml

import (
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

func linearReaders() []lineartest.Reader {
	clean := func(before, after string) func(string) {
		o := Options{
			Inline: func(string) string { return "/part" },
			Remote: func(string) string { return "/image" },
		}
		return func(s string) { Clean(before+s+after, o) }
	}
	sanitize := func(before, after string) func(string) { return func(s string) { Sanitize(before + s + after) } }
	return []lineartest.Reader{
		{Name: "Sanitize", Units: []string{"x", "<p style='display:none'>", "</div>", "<svg>", "<!--", "<font color=white>"}, Short: 4, Read: sanitize("", "")},
		{Name: "Sanitize style-sheet", Units: []string{".a{color:red}", "/*", "@media{", "}", "a b>c,"}, Short: 4, Read: sanitize("<style>", "</style><p class=a>x")},
		{Name: "AllText", Units: []string{"x", "<p>", "<style>", "&amp;", "<!--"}, Short: 3, Read: func(s string) { AllText(s) }},
		{Name: "CutURL", Units: []string{"a", "é", "/"}, Short: 3, Read: func(s string) { CutURL(s) }},
		{Name: "Clean", Units: []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<img src=https://a.example/" + lineartest.Number + ">", "<style>", "<svg>", "<!--", "&amp;", "<table><tr>", "<b style='"}, Short: 4, Read: clean("", "")},
		{Name: "Clean link-host", Units: []string{lineartest.Letter, "é", "a", ".", "%41", "/", "-"}, Short: 4, Read: clean(`<a href="http://`, `">https://a.example</a>`)},
		{Name: "Clean link-text", Units: []string{lineartest.Letter, "https://a.example ", ".", "a", "@", " "}, Short: 4, Read: clean(`<a href="https://b.example/">`, `</a>`)},
		{Name: "Clean image", Units: []string{lineartest.Letter, "a", "/", "cid:", "data:", "?"}, Short: 4, Read: clean(`<img src="`, `" srcset="https://a.example/b">`)},
		{Name: "Clean style-sheet", Units: []string{".a{color:red}", "a", "/*", "@media{", "}", "url(https://a.example/)", `"`, "\\", "("}, Short: 4, Read: clean("<style>", "</style>")},
		{Name: "Clean style-attribute", Units: []string{"color:red;", "a", "/*", "(", "url(https://a.example/)", "\\", "'", "}"}, Short: 4, Read: clean(`<p style="`, `">x`)},
		{Name: "Clean attribute", Units: []string{"a", " b" + lineartest.Number, "=c", "é", "&amp;", "'"}, Short: 4, Read: clean("<p ", ">x")},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), nil)
}
