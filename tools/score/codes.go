package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/tools/labelled"
)

// codeRecord is a raw message, or one in parts, with its labels.
type codeRecord struct {
	ID       string `json:"id"`
	Grade    string `json:"grade"`
	Raw      []byte `json:"raw_b64"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	HTML     string `json:"html"`
	Expected struct {
		Codes  []string            `json:"codes"`
		Accept map[string][]string `json:"accept"`
		Links  []string            `json:"links"`
		Action string              `json:"action"`
	} `json:"expected"`
}

// message returns the parts of a record that codes and links are read from.
func (r *codeRecord) message() (*mime.Message, error) {
	if len(r.Raw) == 0 {
		return &mime.Message{Subject: r.Subject, Text: r.Text, HTML: r.HTML}, nil
	}
	return parse(r.Raw)
}

// codeTally counts codes and links.
type codeTally struct {
	precision, recall, exact share
	falseCodes               int // messages without a code in which one was found
	codeless                 int
	otp                      share
	otpWrong, otpMissing     int
	link                     share
}

func scoreCodes(_ context.Context, c *corpus) ([]row, error) {
	list, err := records[codeRecord](c, "codes.jsonl")
	if err != nil {
		return nil, err
	}
	tallies := byGrade[codeTally]{}
	for i := range list {
		m, err := list[i].message()
		if err != nil {
			return nil, err
		}
		if action := list[i].Expected.Action; action != "" {
			list[i].Expected.Links = append(list[i].Expected.Links, action)
		}
		t := tallies.of(list[i].Grade)
		missed := c.misses
		found := extract.CodesAndLinks(m.Subject, m.Text, m.HTML)
		t.codes(c, &list[i], found)
		t.oneTime(c, &list[i], found)
		t.links(c, &list[i], found)
		if c.misses > missed {
			printEvidence(c.missed, m, found)
		}
	}
	return tallies.rows((*codeTally).rows), nil
}

// maxPrinted is the number of signs to print for a candidate, the heaviest first.
const maxPrinted = 10

// printEvidence writes what was found in a message and why, one candidate a line.
func printEvidence(w io.Writer, m *mime.Message, found mail.Extraction) {
	c := extract.Read(m.Subject, m.Text, m.HTML, found.OTP != nil)
	model := extract.Trained()
	_, _ = fmt.Fprintf(w, "  no code: %s\n", evidence(model, extract.NoCodeSigns, c.NoCode))
	for i := range c.Codes {
		printCandidate(w, &c.Codes[i], found.OTP, found.Codes, evidence(model, extract.CodeSigns, c.Codes[i].Signs))
	}
	_, _ = fmt.Fprintf(w, "  no action link: %s\n", evidence(model, extract.NoLinkSigns, c.NoLink))
	for i := range c.Links {
		printCandidate(w, &c.Links[i], found.ActionLink, found.Links, evidence(model, extract.LinkSigns, c.Links[i].Signs))
	}
}

func printCandidate(w io.Writer, c *extract.Candidate, chosen *string, listed []string, why string) {
	result := "dropped"
	switch {
	case chosen != nil && *chosen == c.Value:
		result = "chosen"
	case slices.Contains(listed, c.Value):
		result = "listed"
	}
	if c.Veto != "" {
		why = c.Veto
	}
	_, _ = fmt.Fprintf(w, "  %s %q in %s: %s\n", result, c.Value, c.Where, why)
}

// evidence returns the sum of the weights of some signs and the heaviest of them.
func evidence(model *extract.Model, kind string, signs []uint16) string {
	names, weights := extract.SignNames(kind), model.Weights(kind)
	signs = slices.Clone(signs)
	slices.SortStableFunc(signs, func(a, b uint16) int { return cmp.Compare(math.Abs(weights[b]), math.Abs(weights[a])) })
	sum := 0.0
	var list []string
	for i, n := range signs {
		if sum += weights[n]; i < maxPrinted {
			list = append(list, fmt.Sprintf("%+.2f %s", weights[n], names[n]))
		}
	}
	return fmt.Sprintf("%.2f (%s)", sum, strings.Join(list, ", "))
}

func (t *codeTally) rows() []row {
	return []row{
		t.precision.atLeast("codes precision", 0.99), t.recall.atLeast("codes recall", 0.98), t.exact.plain("codes exact"),
		none("messages without a code that returned one", t.falseCodes, t.codeless),
		t.otp.plain("otp right"), none("otp wrong", t.otpWrong, t.exact.all),
		{name: "otp missing", value: none("", t.otpMissing, t.otp.all).value},
		t.link.atLeast("action link", 0.97),
	}
}

// codes compares all candidates with the expected codes.
func (t *codeTally) codes(c *corpus, r *codeRecord, found mail.Extraction) {
	open := slices.Clone(r.Expected.Codes)
	exact := true
	for _, code := range found.Codes {
		i := slices.IndexFunc(open, func(want string) bool { return r.accepts(want, code) })
		t.precision.add(i >= 0)
		if i >= 0 {
			open = slices.Delete(open, i, i+1)
			continue
		}
		exact = false
		c.miss(r.ID, "false code %q", code)
	}
	for range len(r.Expected.Codes) - len(open) {
		t.recall.add(true)
	}
	for _, code := range open {
		t.recall.add(false)
		exact = false
		c.miss(r.ID, "code %q not found", code)
	}
	t.exact.add(exact)
	if len(r.Expected.Codes) == 0 {
		t.codeless++
		if len(found.Codes) > 0 {
			t.falseCodes++
		}
	}
}

// accepts reports whether code is the expected code, in any accepted form.
func (r *codeRecord) accepts(want, code string) bool {
	spellings := append([]string{want}, r.Expected.Accept[want]...)
	return slices.ContainsFunc(spellings, func(s string) bool { return labelled.Plain(s) == labelled.Plain(code) })
}

// oneTime scores the code that the user should enter.
func (t *codeTally) oneTime(c *corpus, r *codeRecord, found mail.Extraction) {
	wanted := len(r.Expected.Codes) > 0
	right := found.OTP != nil && slices.ContainsFunc(r.Expected.Codes, func(want string) bool { return r.accepts(want, *found.OTP) })
	switch {
	case found.OTP != nil && !right:
		t.otpWrong++
		c.miss(r.ID, "otp %q is wrong", *found.OTP)
	case wanted && found.OTP == nil:
		t.otpMissing++
		c.miss(r.ID, "no otp")
	}
	if wanted {
		t.otp.add(right)
	}
}

// beside matches links that are not the main link of a message.
var beside = regexp.MustCompile(`(?i)unsub|opt-?out|preferences|privacy|/help|support|track|/open\b|pixel|terms`)

// links scores the first link: it must be the main link, or absent if there is
// none.
func (t *codeTally) links(c *corpus, r *codeRecord, found mail.Extraction) {
	first := ""
	if len(found.Links) > 0 {
		first = found.Links[0]
	}
	right := found.ActionLink == nil && !beside.MatchString(first)
	if len(r.Expected.Links) > 0 {
		right = slices.Contains(r.Expected.Links, first)
	}
	if t.link.add(right); right {
		return
	}
	action := "none"
	if found.ActionLink != nil {
		action = *found.ActionLink
	}
	c.miss(r.ID, "first link %q, action link %q, want %q", first, action, r.Expected.Links)
}
