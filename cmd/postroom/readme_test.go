package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of settings into its page")

// The README, the page that goes on where it ends, and the page of the settings.
const (
	readme       = "../../README.md"
	tour         = "../../docs/tour.md"
	settingsPage = "../../docs/configuration.md"
)

// block is a code block of a page.
type block struct {
	language, text string
	at             string // the page and the line
}

func blocksOf(t *testing.T, pages ...string) []block {
	t.Helper()
	var all []block
	for _, page := range pages {
		all = append(all, pageBlocks(t, page)...)
	}
	return all
}

func pageBlocks(t *testing.T, page string) []block {
	t.Helper()
	var blocks []block
	open := false
	n := 0
	for line := range strings.Lines(readFile(t, page)) {
		n++
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			blocks = append(blocks, block{language: strings.TrimSpace(language), at: fmt.Sprintf("%s:%d", filepath.Base(page), n)})
			open = true
		case fence:
			open = false
		case open:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// This checks the sh blocks of the README. The test of the TypeScript clients
// runs the rest of them.
func TestREADMENamesMakeTargetsThatExist(t *testing.T) {
	t.Parallel()
	makefile := readFile(t, "../../Makefile") + readFile(t, "../../contract.mk")
	named := 0
	for _, b := range blocksOf(t, readme) {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			target, makes := strings.CutPrefix(strings.TrimSpace(line), "make ")
			if !makes {
				continue
			}
			named++
			if !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("%s: %q is not a make target", b.at, target)
			}
		}
	}
	if named == 0 {
		t.Error("the README does not say how it is started")
	}
}

// TestErrorsPageListsAll compares its table with the codes of the contract.
func TestErrorsPageListsAll(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/errors.md")
	_, contract, _ := strings.Cut(readFile(t, "../../openapi.yaml"), "\n    ErrorCode:\n")
	contract, _, ok := strings.Cut(contract, "\n    McpError:\n")
	_, contract, found := strings.Cut(contract, "enum:")
	if !ok || !found {
		t.Fatal("the contract has no error codes")
	}
	n := 0
	for line := range strings.Lines(contract) {
		line, comment, _ := strings.Cut(line, "#")
		status := strings.TrimSpace(comment)
		for code := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "[],"), ",") {
			if code = strings.Trim(strings.TrimSpace(code), "]"); code == "" {
				continue
			}
			if n++; !strings.Contains(page, "| `"+code+"` |") || status != "" && !strings.Contains(page, "| "+status+" | `"+code+"` |") {
				t.Errorf("docs/errors.md does not list %s %s", status, code)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d codes found in the contract", n)
	}
}

// TestSettingsPageListsAll compares its table with Config, or writes it.
func TestSettingsPageListsAll(t *testing.T) {
	t.Parallel()
	text := readFile(t, settingsPage)
	before, rest, ok1 := strings.Cut(text, "<!-- settings:")
	note, rest, ok2 := strings.Cut(rest, "-->\n")
	_, after, ok3 := strings.Cut(rest, "<!-- /settings -->")
	if !ok1 || !ok2 || !ok3 {
		t.Fatal("the page has no place for the settings")
	}
	want := before + "<!-- settings:" + note + "-->\n" + settingsTable() + "<!-- /settings -->" + after
	if *update {
		if err := os.WriteFile(settingsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, text); d != "" {
		t.Errorf("the page's settings differ from Config (-want +got); run `go test ./cmd/postroom -run SettingsPage -update`:\n%s", d)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| Setting | What it is | Value | Default |\n| --- | --- | --- | --- |\n")
	for _, s := range settings() {
		def := s.unset
		if s.def != "" {
			def = "`" + s.def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.env, s.usage, s.want, def)
	}
	return b.String() + "\n"
}
