package mailhtml_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/internal/mailhtml/hostilemail"
)

const target = "http://127.0.0.1:9"

// TestHostileMailIsHarmless cleans hostile messages and parses the result like a browser. It
// contains only what the lists allow. Row X1 of docs/testing.md, without a browser.
func TestHostileMailIsHarmless(t *testing.T) {
	t.Parallel()
	messages := hostilemail.All(target)
	if len(messages) < 250 {
		t.Errorf("only %d hostile messages", len(messages))
	}
	for _, m := range messages {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			checkHarmless(t, mailhtml.Clean(m.HTML, mailhtml.Options{}))
			checkHarmless(t, mailhtml.Clean(m.HTML, shown))
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, m := range hostilemail.All(target) {
		if len(m.HTML) < 10_000 {
			f.Add(m.HTML)
		}
	}
	f.Fuzz(func(t *testing.T, source string) {
		checkHarmless(t, mailhtml.Clean(source, mailhtml.Options{}))
		checkHarmless(t, mailhtml.Clean(source, shown))
	})
}

// checkHarmless parses what is shown like a browser.
func checkHarmless(t *testing.T, p mailhtml.Page) {
	t.Helper()
	if strings.ContainsAny(p.Style, `<\`) {
		t.Errorf("a style sheet of %q", p.Style)
	}
	checkCSS(t, p.Style)
	root, err := html.Parse(strings.NewReader("<!doctype html><body>" + p.Body))
	if err != nil {
		t.Fatalf("cannot be parsed: %v", err)
	}
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("a comment: %q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if n.Namespace != "" || !strings.Contains(allowedElements, " "+n.Data+" ") {
			t.Errorf("an element <%s> of %q", n.Data, n.Namespace)
		}
		for _, at := range n.Attr {
			checkAttribute(t, n.Data, at)
		}
	}
}

const (
	allowedElements = ` html head body a abbr address article aside b bdi bdo big blockquote br caption center cite code col
 colgroup dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol
 p pre q s samp section small span strike strong sub sup table tbody td tfoot th thead time tr tt u ul var wbr `
	allowedAttributes = ` align valign dir lang class id role type bgcolor color face size clear width height border
 cellpadding cellspacing hspace vspace start value colspan rowspan alt title data-left-out rel target `
)

func checkAttribute(t *testing.T, element string, at html.Attribute) {
	t.Helper()
	ours := strings.HasPrefix(at.Val, "/inline") || strings.HasPrefix(at.Val, "/remote?")
	switch at.Key {
	case "style":
		if !strings.HasPrefix(at.Val, "all:initial!important;") { // written by Clean: "all" is not on a list
			checkCSS(t, at.Val)
		}
	case "href":
		scheme, _, _ := strings.Cut(at.Val, ":")
		if element != "a" || !strings.HasPrefix(at.Val, "#") && !strings.Contains(" http https mailto tel ", " "+scheme+" ") {
			t.Errorf("<%s href=%q>", element, at.Val)
		}
	case "src", "background":
		if !ours && (!strings.HasPrefix(at.Val, "data:image/") || strings.HasPrefix(at.Val, "data:image/svg")) {
			t.Errorf("<%s %s=%q>", element, at.Key, at.Val)
		}
	default:
		if !strings.Contains(strings.ReplaceAll(allowedAttributes, "\n", " "), " "+at.Key+" ") {
			t.Errorf("<%s %s=%q>", element, at.Key, at.Val)
		}
	}
}

// loadsOrRuns are functions, at-rules and properties that a message must not contain.
var loadsOrRuns = regexp.MustCompile(`[<\\\\]|@(import|font|namespace|property)|(expression|image-set|src|var|attr|image)\(|` +
	`(^|[;{\n])(position|content|behavior|-moz-binding|cursor|filter|animation|transform)\s*:[^{]*([;}]|$)`)

// checkCSS searches for what loads or runs, without the parser under test.
func checkCSS(t *testing.T, style string) {
	t.Helper()
	lower := strings.ToLower(style)
	if found := loadsOrRuns.FindString(lower); found != "" {
		t.Errorf("%q in the style %q", found, style)
	}
	for rest := lower; ; {
		_, after, found := strings.Cut(rest, "url(")
		if !found {
			return
		}
		if rest = after; !strings.HasPrefix(after, `"/inline`) && !strings.HasPrefix(after, `"/remote?`) && !strings.HasPrefix(after, `"data:image/`) {
			t.Errorf("a url in the style %q", style)
		}
	}
}
