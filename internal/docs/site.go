package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/postroom/postroom/docs"
)

// repository is where links to other files of the repository lead.
const repository = "https://github.com/postroom/postroom/blob/main/"

// guideGroups are the guides of the menu.
var guideGroups = []struct {
	Name   string
	Guides []string
}{
	{"Start", []string{"install", "quickstart", "tour", "concepts", "clients", "mcp", "testing-signup", "webhooks", "errors"}},
	{"Receive and send", []string{"work", "agents", "safety", "templates", "domains", "deliverability", "submission", "feedback", "bounce-codes", "moving"}},
	{"Run", []string{
		"operations", "configuration", "backup", "upgrade", "proxies", "dashboard", "accounts", "storage", "postgresql", "nodes", "scale", "security", "limits", "doctor", "troubleshooting",
	}},
	{"Measured", []string{"reliability", "performance", "benchmark", "comparison", "roadmap"}},
}

// unlisted are the guides for contributors, which the menu leaves out.
var unlisted = []string{"testing", "upstream"}

// page is a page of the site.
type page struct {
	Path, Title string // the path is below docs/
	Markdown    string
	Samples     []sample
	group       string
	lower       string // its text in lower case, for the search
	headings    string // in lower case
}

// site is all pages.
type site struct {
	contract *contract
	pages    map[string]*page
	groups   []group
	markdown goldmark.Markdown
	static   bool // without the search and the pages of an installation
}

// group is a part of the menu.
type group struct {
	Name  string
	API   bool
	Pages []*page
}

// newSite reads the contract and the guides.
func newSite(document []byte) (*site, error) {
	c, err := readContract(document)
	if err != nil {
		return nil, err
	}
	s := &site{contract: c, pages: map[string]*page{}}
	s.markdown = goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{}, 100))),
	)
	for _, g := range guideGroups {
		for _, name := range g.Guides {
			if err := s.addGuide(g.Name, name); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range unlisted {
		if err := s.addGuide("", name); err != nil {
			return nil, err
		}
	}
	for _, op := range c.operations {
		s.add(op.Tags[0], true, &page{Path: "api/" + op.OperationID, Title: op.Summary, Markdown: c.describe(op), Samples: c.samples(op)})
	}
	for _, op := range c.events {
		s.add("Webhook events", true, &page{Path: "events/" + op.path, Title: op.path, Markdown: c.describe(op)})
	}
	return s, nil
}

func (s *site) addGuide(group, name string) error {
	text, err := docs.Guides.ReadFile(name + ".md")
	if err != nil {
		return fmt.Errorf("read the guide: %w", err)
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
	s.add(group, false, &page{Path: "guides/" + name, Title: title, Markdown: string(text)})
	return nil
}

func (s *site) add(name string, api bool, p *page) {
	s.pages[p.Path] = p
	p.group, p.lower = name, strings.ToLower(p.Title+"\n"+p.Path+"\n"+p.Markdown)
	for line := range strings.Lines(p.lower) {
		if strings.HasPrefix(line, "#") {
			p.headings += line
		}
	}
	if name == "" {
		return
	}
	if n := len(s.groups); n == 0 || s.groups[n-1].Name != name {
		s.groups = append(s.groups, group{Name: name, API: api})
	}
	last := &s.groups[len(s.groups)-1]
	last.Pages = append(last.Pages, p)
}

// links makes the links of guides lead to pages of the site, and those to other files of
// the repository to the repository.
type links struct{}

// Transform implements parser.ASTTransformer.
func (links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(linkTo(string(n.Destination)))
			}
		case *ast.Image:
			if entering {
				n.Destination = append([]byte("../"), n.Destination...)
			}
		}
		return ast.WalkContinue, nil
	})
}

// linkTo returns the address of a link, from a guide.
func linkTo(dest string) string {
	file, fragment, _ := strings.Cut(dest, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	name, isGuide := strings.CutSuffix(file, ".md")
	switch {
	case isGuide && !strings.Contains(name, "/"):
		return name + fragment
	case isGuide, strings.HasPrefix(file, "../"):
		return repository + path.Join("docs", file) + fragment
	default:
		return dest
	}
}

// anchors are the ids of headings, as GitHub makes them.
type anchors map[string]int

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, strings.TrimSpace(string(heading)))
	n := a[id]
	a[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (a anchors) Put(id []byte) { a[string(id)]++ }

// html renders Markdown.
func (s *site) html(markdown string) (template.HTML, error) {
	var out bytes.Buffer
	ids := parser.WithContext(parser.NewContext(parser.WithIDs(anchors{})))
	if err := s.markdown.Convert([]byte(markdown), &out, ids); err != nil {
		return "", err
	}
	folded := inner.ReplaceAllString(out.String(), "<details><summary>"+insideHeading+"</summary>\n$1</details>")
	return template.HTML(folded), nil //nolint:gosec // our own texts, without raw HTML
}

// inner is the table of the fields of objects in a rendered page.
var inner = regexp.MustCompile(`(?s)<p>` + insideHeading + `</p>\n(<table>.*?</table>)`)

// maxFound is how many pages a search shows, and maxLine is the length of the line of each.
const maxFound, maxLine = 20, 160

// hit is a page that a search found, and its line that has most of the words.
type hit struct {
	*page
	Line  template.HTML
	score int
}

// search returns the pages that have all words of a query, the most relevant ones first.
func (s *site) search(query string) (found []hit) {
	words := strings.Fields(strings.ToLower(query[:min(len(query), 200)]))
	if len(words) == 0 {
		return nil
	}
	for _, g := range s.groups {
		for _, p := range g.Pages {
			if score := p.score(words, g.API); score > 0 {
				found = append(found, hit{page: p, score: score})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	found = found[:min(len(found), maxFound)]
	for i := range found {
		found[i].Line = found[i].line(words)
	}
	return found
}

// score says how relevant a page is: words in its title count most, then those in headings,
// then how often they occur. It is 0 if one of the words is missing.
func (p *page) score(words []string, api bool) (score int) {
	title := strings.ToLower(p.Title + " " + p.Path)
	for _, w := range words {
		n := strings.Count(p.lower, w)
		if n == 0 {
			return 0
		}
		score += min(n, 5) + 5*min(2, strings.Count(p.headings, w))
		if strings.Contains(title, w) {
			score += 20
		}
	}
	if strings.Contains(p.lower, strings.Join(words, " ")) {
		score += 10
	}
	if !api { // guides explain what operations refer to
		score += 5
	}
	return score
}

// markup are the characters of Markdown that a search does not show.
var markup = strings.NewReplacer("|", " ", "`", "", "*", "", "#", "")

// line returns the line of the page with most of the words, which are marked in it.
func (p *page) line(words []string) template.HTML {
	best, most := "", 0
	for line := range strings.Lines(p.Markdown) {
		n, low := 0, strings.ToLower(line)
		for _, w := range words {
			if strings.Contains(low, w) {
				n++
			}
		}
		if n > most && !strings.HasPrefix(line, "# ") {
			best, most = line, n
		}
	}
	var quoted []string
	for _, w := range words {
		start := ""
		if first, _ := utf8.DecodeRuneInString(w); unicode.IsLetter(first) {
			start = `\b` // "code" is not in "decoded"
		}
		quoted = append(quoted, start+regexp.QuoteMeta(w))
	}
	marks := regexp.MustCompile("(?i)" + strings.Join(quoted, "|"))
	text := []rune(oneLine(markup.Replace(best)))
	if len(text) > maxLine {
		at := 0
		if first := marks.FindStringIndex(string(text)); first != nil {
			at = max(0, min(utf8.RuneCountInString(string(text)[:first[0]])-maxLine/2, len(text)-maxLine))
		}
		text = append(text[at:at+maxLine:at+maxLine], '…')
	}
	marked := template.HTMLEscapeString(marks.ReplaceAllString(string(text), "\x02$0\x03"))
	return template.HTML(strings.NewReplacer("\x02", "<mark>", "\x03", "</mark>").Replace(marked)) //nolint:gosec // escaped
}

// overview is llms.txt: what a language model reads before it calls the API.
func (s *site) overview() string {
	c := s.contract
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n> %s\n\n%s\n\n", c.Info.Title, c.Info.Summary, strings.TrimSpace(c.Info.Description))
	b.WriteString("The whole contract, with every field, limit and error: [openapi.json](/openapi.json) (OpenAPI 3.1). " +
		"All operations on one page: [llms-full.txt](/llms-full.txt). For people: [/docs](/docs).\n")
	for _, g := range s.groups {
		about := ""
		for _, tag := range c.Tags {
			if tag.Name == g.Name {
				about = tag.Description + "\n\n"
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", g.Name, about)
		for _, p := range g.Pages {
			fmt.Fprintf(&b, "- [%s](/docs/%s.md)%s\n", p.Title, p.Path, s.callOf(p))
		}
	}
	return b.String()
}

// callOf describes the operation of a page in a line.
func (s *site) callOf(p *page) string {
	for _, op := range s.contract.operations {
		if "api/"+op.OperationID != p.Path {
			continue
		}
		out := ": " + op.method + " " + op.path
		if scopes := op.scopes(); len(scopes) > 0 {
			out += " (scope: " + strings.Join(scopes, " or ") + ")"
		}
		return out
	}
	return ""
}

// whole is llms-full.txt: the overview, and every operation and event with an example.
func (s *site) whole() string {
	var b strings.Builder
	b.WriteString(s.overview())
	for _, g := range s.groups {
		for _, p := range g.Pages {
			if g.API {
				b.WriteString("\n---\n\n" + p.plain())
			}
		}
	}
	return b.String()
}

// plain is the Markdown of a page, with the example call.
func (p *page) plain() string {
	if len(p.Samples) == 0 {
		return p.Markdown
	}
	return p.Markdown + "## Example\n\n```" + p.Samples[0].Language + "\n" + p.Samples[0].Code + "\n```\n"
}

// image returns an image of the guides, or nil.
func image(name string) []byte {
	body, err := fs.ReadFile(docs.Guides, "images/"+name)
	if err != nil {
		return nil
	}
	return body
}

// images lists the images of the guides.
func images() (names []string) {
	entries, err := fs.ReadDir(docs.Guides, "images")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
