//go:build clients

package calendar_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
)

// answer is what a parser of others reads in an answer.
type answer struct {
	Method, UID, Summary, Organizer, Attendee, Partstat, Start, Recurrence, Comment string
	Sequence, Attendees                                                             int
}

// icalendar (Python) and ical.js (Node.js) understand the three answers to each invitation
// of testdata.
func TestOthersUnderstandAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.eml")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var want []answer
	by := mail.Address{Name: `The "Desk", of agents`, Email: "desk@agents.example"}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := calendar.Read(textOf(t, raw))
		if c.Method != "request" {
			continue
		}
		for _, status := range []string{"accepted", "declined", "tentative"} {
			comment := "Gern; größer, \"später\"\n" + strings.Repeat("und noch einmal ", 10) + "\\"
			texts = append(texts, string(calendar.Reply(c, by, status, comment, now)))
			a := answer{
				Method: "REPLY", UID: c.UID, Sequence: c.Sequence, Summary: c.Summary, Organizer: "mailto:" + c.Organizer.Email,
				Attendees: 1, Attendee: "mailto:" + by.Email, Partstat: strings.ToUpper(status), Start: instant(c.Start), Comment: comment,
			}
			if c.RecurrenceID != nil {
				a.Recurrence = instant(c.RecurrenceID)
			}
			want = append(want, a)
		}
	}
	if len(want) < 21 {
		t.Fatalf("only %d answers", len(want))
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, parser := range [][]string{{"node", "testdata/parsers/read.mjs"}, {"/usr/bin/python3", "testdata/parsers/read.py"}} {
		cmd := exec.CommandContext(t.Context(), parser[0], parser[1])
		var out, faults bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &faults
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", parser, err, &faults)
		}
		var got []answer
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %v\n%s", parser, err, &out)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got)\n%s", parser, diff)
		}
	}
}

// instant returns the instant of a time, or a date.
func instant(t *mail.CalendarTime) string {
	if t.UTC == nil {
		return t.Local
	}
	return t.UTC.Format("2006-01-02T15:04:05Z")
}
