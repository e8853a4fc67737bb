package mail_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// oddHeader begins a message of testdata/odd whose fields are not all given.
const oddHeader = "From: Shop <noreply@shop.example>\nTo: ann@cases.example\nMessage-ID: <odd@shop.example>\nMIME-Version: 1.0\n"

// escape matches the escapes in messages of testdata/odd.
var escape = regexp.MustCompile(`\\(x[0-9A-F]{2}|r|\\)`)

// TestOdd reads the messages of testdata/odd: variants of what other programs
// read wrong. README.md there has the format.
func TestOdd(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/odd/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for record := range strings.SplitSeq(strings.TrimPrefix(string(data), "## "), "\n## ") {
			name, rest, _ := strings.Cut(record, "\n")
			want, raw, _ := strings.Cut(rest, "\n")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var c reportCase
				d := json.NewDecoder(strings.NewReader(want))
				d.DisallowUnknownFields()
				if err := d.Decode(&c.Expected); err != nil {
					t.Fatal(err)
				}
				c.check(t, []byte(oddMessage(raw)))
			})
		}
	}
}

// oddMessage returns the message of a record as it arrives.
func oddMessage(raw string) string {
	bare, isBare := strings.CutPrefix(raw, "@bare\n")
	if !isBare {
		bare = oddHeader + raw
	}
	bare = strings.TrimSuffix(bare, "\n") + "\n"
	return escape.ReplaceAllStringFunc(strings.ReplaceAll(bare, "\n", "\r\n"), func(s string) string {
		unquoted, err := strconv.Unquote(`"` + s + `"`)
		if err != nil {
			panic(err)
		}
		return unquoted
	})
}
