package extract_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/tools/labelled"
)

var exportTo = flag.String("export", "", "write the messages of testdata/languages to this file, one JSON object per line")

const root = "../../.."

var ownMail = sync.OnceValues(func() ([]labelled.Message, error) { return labelled.Own(root) })

// scoreOwn scores the messages that use accepts.
func scoreOwn(t *testing.T, use func(*labelled.Message) bool) *labelled.Tally {
	t.Helper()
	all, err := ownMail()
	if err != nil {
		t.Fatal(err)
	}
	tally := &labelled.Tally{}
	for i := range all {
		if m := &all[i]; use(m) {
			misses := tally.Add(m, extract.CodesAndLinks(m.Subject, m.Text, m.HTML))
			if !m.HeldOut {
				for _, miss := range misses {
					t.Logf("%s %s: %s", m.Author, m.ID, miss)
				}
			}
		}
	}
	return tally
}

// limits are the least shares of what must be right.
type limits struct{ messages, precision, recall, exact, link float64 }

func (l limits) check(t *testing.T, got *labelled.Tally) {
	t.Helper()
	t.Log(got)
	for _, x := range []struct {
		name     string
		got, min float64
	}{
		{"messages", float64(got.Messages), l.messages},
		{"precision", labelled.Share(got.Right, got.Found), l.precision},
		{"recall", labelled.Share(got.Right, got.Wanted), l.recall},
		{"all right", labelled.Share(got.Exact, got.Messages), l.exact},
		{"action link", labelled.Share(got.LinkRight, got.Links), l.link},
	} {
		if x.got < x.min {
			t.Errorf("%s %.3f, want at least %.3f", x.name, x.got, x.min)
		}
	}
	if 100*got.OTPWrong > got.Messages {
		t.Errorf("%d of %d OTPs are wrong", got.OTPWrong, got.Messages)
	}
}

// TestLanguages scores the messages of testdata/languages. A third of them is
// never trained on.
func TestLanguages(t *testing.T) {
	t.Parallel()
	if *exportTo != "" {
		export(t, *exportTo)
	}
	t.Run("trained", func(t *testing.T) {
		t.Parallel()
		limits{615, 0.99, 0.99, 0.99, 0.99}.check(t, scoreOwn(t, func(m *labelled.Message) bool { return m.Author == "project" && !m.HeldOut }))
	})
	t.Run("held out", func(t *testing.T) {
		t.Parallel()
		limits{225, 0.98, 0.95, 0.965, 0.97}.check(t, scoreOwn(t, func(m *labelled.Message) bool { return m.Author == "project" && m.HeldOut }))
	})
}

// TestCases scores the messages of testdata/codes, which are hard ones: numbers
// that only one word tells apart from a code.
func TestCases(t *testing.T) {
	t.Parallel()
	limits{900, 0.98, 0.99, 0.985, 0.98}.check(t, scoreOwn(t, func(m *labelled.Message) bool { return m.Author == "cases" }))
}

// TestMail scores the messages of testdata/mail, and those of authors that are
// never trained on. It leaves out the contrasts: pairs that differ in a word, many
// of which no reader that looks at one message can tell apart.
func TestMail(t *testing.T) {
	t.Parallel()
	mail := func(m *labelled.Message) bool {
		return m.Author != "project" && m.Author != "cases" && m.Author != "contrasts"
	}
	t.Run("trained", func(t *testing.T) {
		t.Parallel()
		limits{1020, 0.985, 0.93, 0.955, 0.97}.check(t, scoreOwn(t, func(m *labelled.Message) bool { return mail(m) && !m.HeldOut }))
	})
	t.Run("held out", func(t *testing.T) {
		t.Parallel()
		limits{328, 0.99, 0.95, 0.97, 0.9}.check(t, scoreOwn(t, func(m *labelled.Message) bool { return mail(m) && m.HeldOut }))
	})
}

// export writes the messages of testdata/languages for bench/extractors.
func export(t *testing.T, file string) {
	t.Helper()
	all, err := ownMail()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for i := range all {
		m := &all[i]
		if m.Author != "project" {
			continue
		}
		file, _, _ := strings.Cut(m.ID, "/")
		if err := json.NewEncoder(&out).Encode(map[string]any{
			"file": file, "name": m.ID, "held_out": m.HeldOut, "codes": append(append([]string{}, m.Codes...), m.Accept[m.OTP]...),
			"text": m.Subject + "\n\n" + cmp.Or(m.Text, htmltext.Text(m.HTML)), "otp": extract.CodesAndLinks(m.Subject, m.Text, m.HTML).OTP,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestShapes replaces the codes of the messages of testdata/languages with codes
// of other shapes. The share of codes found must stay what the model reaches
// today, and no other number may become the OTP.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct {
		code  string
		found float64
	}{
		{"2931", 0.98}, {"29317", 0.98}, {"4829131", 0.98}, {"482-913", 0.98}, {"48 29 13", 0.98}, {"48-2913", 0.96}, {"H4K9TZ", 0.98},
		{"AC-44170", 0.96}, {"Rk7mPx", 0.98}, {"vT9q-Lr2x", 0.98}, {"T4-9ZL-P2", 0.93}, {"7c9x2b", 0.96}, {"KXQ-WRT", 0.98}, {"2027", 0.83},
		{"7K2 9QX", 0.98}, {"QHWKTB", 0.98},
	} {
		list, err := labelled.Reshape(root, func(int) string { return shape.code })
		if err != nil {
			t.Fatal(err)
		}
		var tally labelled.Tally
		for i := range list {
			m := &list[i]
			tally.Add(m, extract.CodesAndLinks(m.Subject, m.Text, m.HTML))
		}
		t.Logf("%s: %.3f", shape.code, labelled.Share(tally.Right, tally.Wanted))
		if got := labelled.Share(tally.Right, tally.Wanted); tally.Wanted < 200 || got < shape.found || tally.OTPWrong > 1 {
			t.Errorf("%s: %.3f of %d found, want %.3f; %d wrong", shape.code, got, tally.Wanted, shape.found, tally.OTPWrong)
		}
	}
}

// The documents say how many languages have words. zh-TW.txt of testdata is Chinese too.
func TestTheNumberOfLanguagesIsTrue(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("words/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(len(files)-1, " languages") // general.txt has the words of all
	for _, page := range []string{"extract.go", "../../../README.md", "../../../CHANGELOG.md", "../../../docs/benchmark.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}
