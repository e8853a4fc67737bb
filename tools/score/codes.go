package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
)

type codeRecord struct {
	ID       string `json:"id"`
	Grade    string `json:"grade"`
	Raw      []byte `json:"raw_b64"`
	Expected struct {
		Codes  []string            `json:"codes"`
		Accept map[string][]string `json:"accept"`
		Links  []string            `json:"links"`
	} `json:"expected"`
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
		m, err := parse(list[i].Raw)
		if err != nil {
			return nil, err
		}
		t := tallies.of(list[i].Grade)
		missed := c.misses
		found := extract.CodesAndLinks(m.Subject, m.Text, m.HTML)
		t.codes(c, &list[i], found)
		t.oneTime(c, &list[i], found)
		t.links(c, &list[i], found)
		if c.misses > missed {
			printEvidence(c.missed, extract.Explain(m.Subject, m.Text, m.HTML, mail.DefaultLimits()))
		}
	}
	return tallies.rows((*codeTally).rows), nil
}

// printEvidence writes what was found in a message and why, one candidate a line.
func printEvidence(w io.Writer, why extract.Explanation) {
	_, _ = fmt.Fprintf(w, "  otp: %s; action link: %s\n", why.OTP, why.Link)
	for _, c := range slices.Concat(why.Codes, why.Links) {
		_, _ = fmt.Fprintf(w, "  %s %q in %s, %d points: %+v\n", c.Result, c.Value, c.Where, c.Score, c.Evidence)
	}
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
	return slices.ContainsFunc(spellings, func(s string) bool { return sameCode(s) == sameCode(code) })
}

// sameCode normalizes a code for comparison: NFKC, ASCII digits, upper case,
// without spaces, dashes and invisible characters.
func sameCode(s string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch {
		case r == '\u200b', r == '\u00ad', unicode.IsSpace(r), unicode.Is(unicode.Pd, r):
			return -1
		case unicode.Is(unicode.Nd, r):
			return asciiDigit(r)
		}
		return r
	}, norm.NFKC.String(s)))
}

// asciiDigit converts a digit of any script to ASCII. The ten digits of a script
// are consecutive.
func asciiDigit(r rune) rune {
	n := rune(0)
	for n < 9 && unicode.Is(unicode.Nd, r-n-1) && r-n-1 >= '0' {
		n++
	}
	return '0' + n%10
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
