package extract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

// A codeCase is a message and its expected codes and links.
type codeCase struct {
	name, subject, body string
	codes               []string
	unsure              bool   // no certain code
	action              string // "" for none
}

// TestCodeCases reads the messages of testdata/codes, one file per language. A
// message begins with "## name", followed by lines with the expected results,
// an empty line and the body, which is HTML if it begins with "<".
func TestCodeCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/codes/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range readCodeCases(t, string(data)) {
				t.Run(c.name, func(t *testing.T) { c.check(t) })
			}
		})
	}
}

func readCodeCases(t testing.TB, data string) (cases []codeCase) {
	t.Helper()
	for block := range strings.SplitSeq("\n"+data, "\n## ") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		head, body, ok := strings.Cut(block, "\n\n")
		if !ok {
			t.Fatalf("no body: %q", block)
		}
		lines := strings.Split(head, "\n")
		c := codeCase{name: lines[0], body: strings.TrimRight(body, "\n")}
		for _, line := range lines[1:] {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "subject":
				c.subject = value
			case "codes":
				if value != "none" {
					c.codes = strings.Split(value, ", ")
				}
			case "otp":
				c.unsure = true
			case "action":
				c.action = value
			default:
				t.Fatalf("%s: what is %q?", c.name, line)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

func (c *codeCase) check(t *testing.T) {
	t.Helper()
	var got mail.Extraction
	if strings.HasPrefix(c.body, "<") {
		got = CodesAndLinks(c.subject, "", c.body)
	} else {
		got = CodesAndLinks(c.subject, c.body, "")
	}
	if !slices.Equal(got.Codes, c.codes) {
		t.Errorf("codes %q, want %q", got.Codes, c.codes)
	}
	if want := len(c.codes) > 0 && !c.unsure; want != (got.OTP != nil) {
		t.Errorf("a single code: %v, want %v: %s", got.OTP != nil, want, show(got))
	}
	action := ""
	if got.ActionLink != nil {
		action = *got.ActionLink
	}
	if action != c.action {
		t.Errorf("action link %q, want %q of %q", action, c.action, got.Links)
	}
}
