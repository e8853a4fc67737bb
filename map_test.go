package postroom_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// Each file and folder in the map of CONTRIBUTING.md exists. A file without a folder is
// in the folder before it.
func TestTheMapNamesWhatExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			continue
		}
		folder := "."
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			name := m[1]
			switch ext := path.Ext(name); {
			case strings.Contains(name, "/"):
				if folder = name; ext != "" {
					folder = path.Dir(name)
				}
			case ext == ".go" || ext == ".txt":
				name = path.Join(folder, name)
			default:
				continue
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[1]), err)
			}
			files++
		}
	}
	if files < 50 {
		t.Errorf("the map names %d files and folders, want at least 50", files)
	}
}
