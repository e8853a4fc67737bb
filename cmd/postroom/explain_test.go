package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplain explains a message in a file and on the standard input, with one
// line for each candidate.
func TestExplain(t *testing.T) {
	t.Parallel()
	const message = "Subject: Login\r\n\r\nOrder 20048812. Your login code is 482913.\r\nhttps://a.example/verify/8f3ac2d19b7e\x1b[2J\r\n"
	file := filepath.Join(t.TempDir(), "a.eml")
	if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"explain", file}, {"explain", "-"}, {"explain"}} {
		var out bytes.Buffer
		p := program{}
		p.Stdin, p.Stdout, p.Stderr = strings.NewReader(message), &out, &out
		root := newCommand(p)
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		for i, want := range []string{"otp: 482913 has the most points", "dropped", "chosen", "action_link: ", ""} {
			if !strings.Contains(lines[min(i, len(lines)-1)], want) {
				t.Errorf("line %d lacks %q:\n%s", i, want, &out)
			}
		}
		if !strings.Contains(out.String(), "+6 a word for a code before") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("the evidence is missing, or a control character is printed:\n%s", &out)
		}
	}
	p := program{}
	p.Stdout, p.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	root := newCommand(p)
	root.SetArgs([]string{"explain", file + ".none"})
	if err := root.ExecuteContext(t.Context()); err == nil {
		t.Error("a missing file is accepted")
	}
}
