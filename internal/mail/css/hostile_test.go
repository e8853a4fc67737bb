package css

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// TestHostileStyles reads small messages that multiply their work: by rules and elements, or
// by functions in functions.
func TestHostileStyles(t *testing.T) {
	t.Parallel()
	again := strings.Repeat
	var nested strings.Builder
	for i := range 6 {
		fmt.Fprintf(&nested, "--a%d:%s;", i, again(fmt.Sprintf("var(--a%d)", i+1), 60))
	}
	const many = 20_000
	for _, c := range []struct {
		name, sheet, outer, key, value string
		elements                       int
	}{
		{name: "a mixture in a mixture", key: "style", value: "color:" + again("color-mix(", 100)},
		{name: "mixtures", key: "style", value: "background:" + again("color-mix()", many)},
		{name: "variables in variables", key: "style", value: nested.String() + "color:var(--a0)"},
		{name: "long inherited variable", outer: "--x:" + again("1px ", 60_000), key: "style", value: "margin:var(--x)", elements: many},
		{name: "open functions", key: "style", value: "transform:" + again("scale(", 2*many)},
		{name: "one class again and again", sheet: again(".a.b{color:red}", 5), key: "class", value: again("a ", 10*many)},
		{name: "long attribute", sheet: again(`[title*="yz"]{color:red}`, 8000), key: "title", value: again("x", 2<<20)},
		{name: "long value of a rule", sheet: "p{margin:" + again("1px ", 60_000) + "}", elements: many},
		{name: "long selector", sheet: again("p"+again(".a", 500)+".b{color:red}", 200), key: "class", value: "a b", elements: 3000},
	} {
		began := time.Now()
		f := NewFinder(c.sheet, false)
		f.Start("body", []html.Attribute{{Key: "style", Val: c.outer}})
		for range max(c.elements, 1) {
			f.Start("p", []html.Attribute{{Key: c.key, Val: c.value}})
			f.End()
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s takes %v", c.name, took)
		}
	}
}
