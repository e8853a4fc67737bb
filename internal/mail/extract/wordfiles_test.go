package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// faultsOfWords lists the lines of a words file that no reader uses: those without a
// section, with an unknown one, or with an empty word.
func faultsOfWords(text string) (faults []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		section, words, ok := strings.Cut(line, ":")
		_, ofCodes := codeSections[section]
		_, ofLinks := linkSections[section]
		if !ok {
			faults = append(faults, fmt.Sprintf("no section in %q", line))
			continue
		}
		if !ofCodes && !ofLinks && !slices.Contains([]string{"unit", "copula", "article", "company"}, section) {
			faults = append(faults, fmt.Sprintf("unknown section %q", section))
		}
		for word := range strings.SplitSeq(words, "|") {
			if strings.Trim(word, " *") == "" {
				faults = append(faults, fmt.Sprintf("an empty word in %q", line))
			}
		}
	}
	return faults
}

func TestWordFilesHaveKnownSections(t *testing.T) {
	t.Parallel()
	files, err := wordFiles.ReadDir("words")
	if err != nil || len(files) < 70 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := wordFiles.ReadFile("words/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faultsOfWords(string(text)) {
			t.Errorf("%s: %s", file.Name(), fault)
		}
	}
}

func TestWordFilesWithFaultsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"code: kod | kody*\n\nunit: kg\n": 0, "codes: kod\n": 1, "kod | kody\n": 1, "code: kod | \n": 1} {
		if got := faultsOfWords(text); len(got) != want {
			t.Errorf("%q: got %q, want %d faults", text, got, want)
		}
	}
}
