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
			{"reply to RCPT TO", said + " (in reply to RCPT TO command)", genericStatus(said)},
		} {
			v := interpret(form.said, "", "", form.status)
			if v.hard() != (kind == "hard") {
				t.Errorf("%s, %s: %s is %q (status %q), want %s", provider, form.name, said, v.reason, v.status, kind)
			}
		}
	}
	if count["hard"] < 249 || count["soft"] < 132 {
		t.Errorf("%v, want 249 hard and 132 soft", count)
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

// TestStatusCodes checks that each code of docs/bounce-codes.md decides as the
// page says.
func TestStatusCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/bounce-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 5 || !replyClass.MatchString(cells[0]) {
			continue
		}
		rows++
		want := Reason(strings.Trim(cells[2], "`"))
		if want == "null" {
			want = ReasonNone
		}
		permanent, transient := interpret("", "", "", "5."+cells[0]), interpret("", "", "", "4."+cells[0])
		if permanent.reason != want || permanent.hard() != (cells[3] == "hard") || transient.hard() != (cells[4] == "hard") {
			t.Errorf("%s is %q, hard %v; transient hard %v; the page says %q", cells[0], permanent.reason, permanent.hard(), transient.hard(), cells[2:])
		}
	}
	if rows != 92 {
		t.Errorf("%d codes, want the 81 registered and 11 others", rows)
	}
}
