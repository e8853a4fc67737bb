package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	return template.HTML(out.String()), nil //nolint:gosec // our own texts, without raw HTML
}

// maxFound is how many pages a search shows.
const maxFound = 30

// search returns the pages that have all words of a query, those with the words in the
// title first.
func (s *site) search(query string) (found []*page) {
	words := strings.Fields(strings.ToLower(query[:min(len(query), 200)]))
	if len(words) == 0 {
		return nil
	}
	has := func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
	var rest []*page
	for _, g := range s.groups {
		for _, p := range g.Pages {
			switch {
			case has(strings.ToLower(p.Title + " " + p.Path)):
				found = append(found, p)
			case has(p.lower):
				rest = append(rest, p)
			}
		}
	}
	found = append(found, rest...)
	return found[:min(len(found), maxFound)]
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
