package store_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

var update = flag.Bool("update", false, "write what docs/concepts.md says about outgoing messages")

// docs/concepts.md shows the states and steps of an outgoing message as the code has them.
// With -update, the test writes them.
func TestStepsOfOutgoingMessagesAreDocumented(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../docs/concepts.md", "<!-- outgoing: go test ./store -run OutgoingMessages -update -->\n", "<!-- end of outgoing -->"
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	known := map[string]bool{"new": true}
	for _, s := range store.OutgoingStates() {
		known[s[0]] = true
	}
	for _, s := range store.OutgoingSteps() {
		if !known[s[0]] || !known[s[2]] {
			t.Errorf("step %s leads from %s to %s, which the states do not have", s[1], s[0], s[2])
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", strings.Replace(s[0], "new", "[*]", 1), s[2], s[1])
	}
	b.WriteString("```\n\n| State | Meaning |\n|---|---|\n")
	for _, s := range store.OutgoingStates() {
		fmt.Fprintf(&b, "| %s | %s |\n", s[0], s[1])
	}
	b.WriteString("\n| From | Step | To | When |\n|---|---|---|---|\n")
	for _, s := range store.OutgoingSteps() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s[0], s[1], s[2], s[3])
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the steps", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(b.String(), shown); d != "" {
		t.Errorf("%s differs from the code; run this test with -update:\n%s", page, d)
	}
}
