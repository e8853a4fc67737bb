package css

import (
	"testing"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/lineartest"
)

// linearReaders are the exported functions that read styles of a message.
func linearReaders() []lineartest.Reader {
	units := []string{".a" + lineartest.Number + "{color:red}", "a", "/*", "@media{", "}", "(", "var(", "a b>c~d,", `\64 `, "[a=b]"}
	find := func(sheet, style string) {
		f := NewFinder(sheet, false)
		for range 3 {
			f.Start("p", []html.Attribute{{Key: "class", Val: "a a1 c"}, {Key: "style", Val: style}})
		}
		f.StartVoid("img", nil)
		f.EndTag("p")
	}
	return []lineartest.Reader{
		{Name: "NewFinder", Units: units, Short: 4, Read: func(s string) { find(s, "") }},
		{Name: "Finder.Start", Units: []string{"color:red;", "--a" + lineartest.Number + ":1;", "var(--a)", "a:var(--a1)var(--a1);", "(", `\`}, Short: 4, Read: func(s string) { find("", s) }},
		{Name: "NewTokens", Units: units, Short: 3, Read: func(s string) { NewTokens(s).all() }},
		{Name: "MediaHolds", Units: []string{"a", ",", "(", "(min-width:1px)", "and "}, Short: 3, Read: func(s string) { MediaHolds(s) }},
		{Name: "EachDeclaration", Units: []string{"a:b;", "(", "}", "a"}, Short: 3, Read: func(s string) { EachDeclaration(NewTokens(s), func(string, []Token) {}) }},
	}
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestDeepElements(t *testing.T) {
	t.Parallel()
	f := NewFinder("", false)
	for range 3 * maxDepth {
		f.Start("div", nil)
	}
	f.Start("p", []html.Attribute{{Key: "style", Val: "display:none"}})
	if f.WhyHidden() == "" {
		t.Error("a deep element is not hidden")
	}
	f.End()
	if f.WhyHidden() != "" || f.Open() != 3*maxDepth {
		t.Error("the element around it is hidden")
	}
}
