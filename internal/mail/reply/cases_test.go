package reply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail/htmltext"
)

// TestReplyCases reads the replies of testdata/replies, one file per mail
// client. A case begins with "## name"; the expected reply text follows the
// line of "=". It is HTML if it begins with "<".
func TestReplyCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replies/*.txt")
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
			for block := range strings.SplitSeq("\n"+string(data), "\n## ") {
				if block == "" {
					continue
				}
				name, rest, _ := strings.Cut(block, "\n")
				text, want, ok := strings.Cut(rest, "\n=====\n")
				if !ok {
					t.Fatalf("%s: no expected reply text", name)
				}
				t.Run(name, func(t *testing.T) {
					got := Text(text, nil)
					if strings.HasPrefix(text, "<") {
						got = TextOfPage(htmltext.Read(text, 0, htmltext.WithMarks, nil), nil)
					}
					if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			}
		})
	}
}
