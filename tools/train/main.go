// Command train sets the weights of the signs of codes and links. It reads the
// labelled messages of internal/mail/extract/testdata and of the given folders,
// prints how well models that have not seen an author or a language do, and
// writes internal/mail/extract/weights.txt.
//
//	go run ./tools/train [-v] [-dry] [-folds=false] [FOLDER ...]
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/tools/labelled"
)

const weightsFile = "internal/mail/extract/weights.txt"

func main() {
	verbose := flag.Bool("v", false, "list what is read wrong")
	dry := flag.Bool("dry", false, "write no weights")
	folds := flag.Bool("folds", true, "cross-validate")
	flag.Parse()
	if err := run(os.Stdout, ".", flag.Args(), *folds, *verbose, *dry); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, root string, folders []string, folds, verbose, dry bool) error {
	all, err := labelled.Own(root)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		more, err := labelled.Folder(folder)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	set, err := newSet(root, all)
	if err != nil {
		return err
	}
	p := &printer{w: w, verbose: verbose}
	if folds {
		p.crossValidate(set, "author", func(m *labelled.Message) string { return m.Author })
		p.crossValidate(set, "language", func(m *labelled.Message) string { return language(m) })
	}
	weights := set.train(func(m *labelled.Message) bool { return !m.HeldOut })
	p.title("trained")
	p.score(weights, set.messages, func(m *labelled.Message) bool { return !m.HeldOut }, func(m *labelled.Message) string { return m.Author })
	p.title("held out")
	p.score(weights, set.messages, func(m *labelled.Message) bool { return m.HeldOut }, func(m *labelled.Message) string { return m.Author })
	if p.err != nil || dry {
		return p.err
	}
	return os.WriteFile(filepath.Join(root, weightsFile), []byte(weights.String()), 0o600)
}

// language returns the language of a message without its region.
func language(m *labelled.Message) string {
	lang, _, _ := strings.Cut(m.Lang, "-")
	return lang
}

// set holds messages with their signs.
type set struct {
	messages     []labelled.Message
	codes, links []*task
	shaped       []labelled.Message // messages of the project with other codes
	shapedCodes  []*task
}

// caseWeight is the weight of a message of testdata/codes, which are all hard,
// contrastWeight that of one that is meant to confuse, and
// shapeWeight that of one with another code in it.
const (
	caseWeight     = 0.5
	contrastWeight = 0.1
	shapeWeight    = 0.6
)

func newSet(root string, messages []labelled.Message) (*set, error) {
	s := &set{messages: messages}
	for i := range messages {
		codes, links := tasksOf(&messages[i])
		switch messages[i].Author {
		case "cases":
			codes.weight, links.weight = caseWeight, caseWeight
		case "contrasts":
			codes.weight, links.weight = contrastWeight, contrastWeight
		}
		s.codes, s.links = append(s.codes, codes), append(s.links, links)
	}
	var err error
	s.shaped, err = labelled.Reshape(root, shapeOf)
	for i := range s.shaped {
		codes, _ := tasksOf(&s.shaped[i])
		codes.weight = shapeWeight
		s.shapedCodes = append(s.shapedCodes, codes)
	}
	return s, err
}

// shapes are the forms of codes that the messages have too few of. 0 stands for
// a digit, A for a capital, and a for a letter in lower case.
var shapes = []string{
	"0000", "00000", "0000000", "00000000", "000-000", "00 00 00", "00-0000", "A0A0AA", "AA-00000", "Aa0aAa", "aA0a-Aa0a", "A0-0AA-A0", "0a0a0a", "AAA-AAA",
	"0A0 0AA", "AAAAAA", "A0AA-0A0A", "0000 0000", "000 000 000", "AAAA-AAAA", "A0A0",
}

// shapeOf returns a code for message i. The letters leave out vowels, as codes
// often do.
func shapeOf(i int) string {
	random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // it must be the same each time
	code := []byte(shapes[i%len(shapes)])
	for n, c := range code {
		switch c {
		case '0':
			code[n] = '0' + byte(random.IntN(10))
		case 'A':
			code[n] = "BCDFGHJKLMNPQRSTVWXZ"[random.IntN(20)]
		case 'a':
			code[n] = "bcdfghjkmnpqrstvwxz"[random.IntN(19)]
		}
	}
	return string(code)
}

// tasksOf returns the choices of the code and of the action link of a message.
func tasksOf(m *labelled.Message) (codes, links *task) {
	c := extract.Read(m.Subject, m.Text, m.HTML, m.OTP != "")
	codes = newTask(c.Codes, c.NoCode, m.IsCode, m.IsTolerated)
	links = newTask(c.Links, c.NoLink, func(v string) bool { return slices.Contains(m.Actions, v) },
		func(v string) bool { return slices.Contains(m.ActionOK, v) })
	return codes, links
}

func newTask(list []extract.Candidate, none []uint16, right, ok func(string) bool) *task {
	t := &task{none: none, weight: 1}
	at := map[string]int{}
	for _, c := range list {
		if c.Veto != "" {
			continue
		}
		v, known := at[c.Value]
		if !known {
			v = len(at)
			at[c.Value] = v
			t.right, t.ok = append(t.right, right(c.Value)), append(t.ok, ok(c.Value) && !right(c.Value))
		}
		t.candidates, t.value = append(t.candidates, c.Signs), append(t.value, v)
	}
	return t
}

// train returns a model for the messages that use accepts.
func (s *set) train(use func(*labelled.Message) bool) *extract.Model {
	var codes, links []*task
	for i := range s.shaped {
		if use(&s.shaped[i]) {
			codes = append(codes, s.shapedCodes[i])
		}
	}
	for i := range s.messages {
		if !use(&s.messages[i]) {
			continue
		}
		if len(s.codes[i].candidates) > 0 {
			codes = append(codes, s.codes[i])
		}
		if len(s.links[i].candidates) > 0 {
			links = append(links, s.links[i])
		}
	}
	size := func(kind string) int { return len(extract.SignNames(kind)) }
	code := fit(codes, size(extract.CodeSigns), size(extract.NoCodeSigns), ofCodes)
	link := fit(links, size(extract.LinkSigns), size(extract.NoLinkSigns), ofLinks)
	return extract.NewModel(map[string][]float64{
		extract.CodeSigns: code.weights, extract.NoCodeSigns: code.none, extract.LinkSigns: link.weights, extract.NoLinkSigns: link.none,
	})
}

// printer prints figures.
type printer struct {
	w       io.Writer
	verbose bool
	err     error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) title(text string) { p.printf("\n%s\n", text) }

// score prints the figures of a model, for each group of the messages that use
// accepts and for all of them.
func (p *printer) score(m *extract.Model, messages []labelled.Message, use func(*labelled.Message) bool, group func(*labelled.Message) string) {
	p.print(tallies(messages, use, group, func(*labelled.Message) *extract.Model { return m }, p.miss))
}

func (p *printer) miss(m *labelled.Message, misses []string) {
	if p.verbose {
		for _, miss := range misses {
			p.printf("    %s %s: %s\n", m.Author, m.ID, miss)
		}
	}
}

func (p *printer) print(groups map[string]*labelled.Tally) {
	var names []string
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.printf("%-20s %s\n", name, groups[name])
	}
}

func tallies(messages []labelled.Message, use func(*labelled.Message) bool, group func(*labelled.Message) string,
	model func(*labelled.Message) *extract.Model, missed func(*labelled.Message, []string),
) map[string]*labelled.Tally {
	groups := map[string]*labelled.Tally{"all": {}}
	for i := range messages {
		m := &messages[i]
		if !use(m) {
			continue
		}
		found := model(m).CodesAndLinks(m.Subject, m.Text, m.HTML)
		name := group(m)
		if groups[name] == nil {
			groups[name] = &labelled.Tally{}
		}
		groups[name].Add(m, found)
		missed(m, groups["all"].Add(m, found))
	}
	return groups
}

// minFold is the number of messages of a group that is validated by itself.
// Smaller ones form one group.
const minFold = 20

// crossValidate prints how well each group is read by a model that was trained
// without it.
func (p *printer) crossValidate(s *set, by string, group func(*labelled.Message) string) {
	p.title("cross-validation by " + by)
	size := map[string]int{}
	open := func(m *labelled.Message) bool { return !m.HeldOut }
	for i := range s.messages {
		if open(&s.messages[i]) {
			size[group(&s.messages[i])]++
		}
	}
	fold := func(m *labelled.Message) string {
		if name := group(m); size[name] >= minFold {
			return name
		}
		return "others"
	}
	models := map[string]*extract.Model{}
	for i := range s.messages {
		name := fold(&s.messages[i])
		if open(&s.messages[i]) && models[name] == nil {
			models[name] = s.train(func(m *labelled.Message) bool { return open(m) && fold(m) != name })
		}
	}
	p.print(tallies(s.messages, open, fold, func(m *labelled.Message) *extract.Model { return models[fold(m)] }, p.miss))
}
