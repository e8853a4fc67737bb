package bounce

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestWordings interprets SMTP replies of providers: alone, with a generic
// status, and as the reply to RCPT TO.
func TestWordings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/wordings.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		kind, rest, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		provider, said, _ := strings.Cut(rest, " | ")
		count[kind]++
		for _, form := range []struct{ name, said, status string }{
			{"alone", said, ""},
			{"generic status", said, genericStatus(said)},
			{"answer to RCPT TO", said + " (in reply to RCPT TO command)", genericStatus(said)},
		} {
			v := judge(form.said, "", "", form.status)
			if v.hard() != (kind == "hard") {
				t.Errorf("%s, %s: %s is %q (status %q), want %s", provider, form.name, said, v.reason, v.status, kind)
			}
		}
	}
	if count["hard"] != 33 || count["soft"] != 27 {
		t.Errorf("%v, want 33 hard and 27 soft", count)
	}
}

var replyClass = regexp.MustCompile(`^\d`)

// genericStatus returns the unspecific status of the class of a reply.
func genericStatus(said string) string {
	if replyClass.FindString(said) == "4" {
		return "4.0.0"
	}
	return "5.0.0"
}
