package htmltext

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// unclosed are costly for browsers and for builders of trees.
var unclosed = []string{"<div>x", "<table><tr><td>", "<p hidden>", "</p></b>"}

// BenchmarkText reads 10 MB of HTML, within a second on a quiet machine (M8).
func BenchmarkText(b *testing.B) {
	for _, piece := range unclosed {
		html := strings.Repeat(piece, 10<<20/len(piece))
		b.Run(piece, func(b *testing.B) {
			for b.Loop() {
				Text(html)
			}
		})
	}
}

// linearReaders are the exported functions that read HTML.
func linearReaders() []lineartest.Reader {
	html := []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<style>", "<b style='", "<div class=gmail_quote>", ".a" + lineartest.Number + "{color:red}", "<!--", "&amp;", "<blockquote type=cite>"}
	return []lineartest.Reader{
		{Name: "Text", Units: html, Read: func(s string) { Text(s) }},
		{Name: "Text of unclosed elements", Units: unclosed, Read: func(s string) { Text(s) }},
		{Name: "Read", Units: html, Short: 4, Read: func(s string) { Read(s, 100, WithMarks, nil) }},
		{Name: "Page.Again", Units: html[:4], Read: func(s string) { Read(s, 100, OnlyVisible, nil).Again(100, WithTargets, nil) }},
		{Name: "Page.Plain", Units: html, Short: 3, Read: func(s string) { Read(s, 100, OnlyVisible, nil).Plain() }},
		{Name: "Page.LinkText", Units: html[:4], Read: func(s string) {
			p := Read("<a href=https://a.example/>"+s, 100, OnlyVisible, nil)
			for i := range p.Links {
				p.LinkText(&p.Links[i])
			}
		}},
		{Name: "Read base", Units: []string{"a", "/", "..", "<a href=x" + lineartest.Number + ">", "%41", "'>"}, Read: func(s string) { Read("<base href='https://a.example/"+s, 100, OnlyVisible, nil) }},
		{Name: "Read style", Units: []string{"a", ".a" + lineartest.Number + "{display:none}", "/*", "@media{", "}", ";", `"`, "\\"}, Read: func(s string) { Read("<style>"+s+"</style><p class=a>x", 0, OnlyVisible, nil) }},
		{Name: "Read attribute", Units: []string{"a", "color:red;", "font-size:0;", "/*", "(", " ", "&amp;", `\`}, Read: func(s string) { Read("<p style=\""+s+"\" class=\""+s+"\">x", 0, OnlyVisible, nil) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), nil)
}
