package calendar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
)

var now = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

func TestReplyNamesTheEventAndTheAttendee(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 19, 22, 30, 0, 0, time.UTC)
	c := &mail.Calendar{
		Method: "request", UID: "a;b,c\\d@example.org", Sequence: 3, Summary: "Planning; " + strings.Repeat("größer, ", 10) + "besser",
		Organizer: &mail.Participant{Address: mail.Address{Name: `Tom "T" ^ Hale`, Email: "tom@hale.example"}},
		Attendees: []mail.Participant{{Address: mail.Address{Email: "mia@hale.example"}}},
		Start:     &mail.CalendarTime{Local: "2026-11-20T11:00:00", Zone: "Mars"}, End: &mail.CalendarTime{Local: "2026-11-21"},
		RecurrenceID: &mail.CalendarTime{Local: "2026-11-20T09:30:00", Zone: "Australia/Melbourne", UTC: &start},
	}
	by := mail.Address{Name: "Desk: agents", Email: "desk@agents.example"}
	want := `BEGIN:VCALENDAR
PRODID:-//Postroom//Postroom//EN
VERSION:2.0
METHOD:REPLY
BEGIN:VEVENT
UID:a\;b\,c\\d@example.org
SEQUENCE:3
RECURRENCE-ID:20261119T223000Z
DTSTAMP:20261102T100000Z
DTSTART;TZID="Mars":20261120T110000
DTEND;VALUE=DATE:20261121
SUMMARY:Planning\; größer\, größer\, größer\, größer\, größer\, g
 rößer\, größer\, größer\, größer\, größer\, besser
ORGANIZER;CN="Tom ^'T^' ^^ Hale":mailto:tom@hale.example
ATTENDEE;PARTSTAT=DECLINED;CN="Desk: agents":mailto:desk@agents.example
COMMENT:Not then.\nBEGIN:VALARM
END:VEVENT
END:VCALENDAR
`
	got := string(calendar.Reply(c, by, "declined", "Not then.\r\nBEGIN:VALARM", now))
	if diff := cmp.Diff(strings.ReplaceAll(want, "\n", "\r\n"), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	answersRight(t, c)
}

// answersRight fails the test unless a reply to c reads as an answer to the same event.
func answersRight(t *testing.T, c *mail.Calendar) {
	t.Helper()
	by := mail.Address{Name: "Desk", Email: "desk@agents.example"}
	text := string(calendar.Reply(c, by, "accepted", "yes", now))
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") {
			t.Fatalf("the line %q", line)
		}
	}
	got, _ := calendar.Read(strings.NewReplacer("\r\n ", "", "\r\n", "\n").Replace(text))
	want := *c
	want.Method, want.Attendees, want.AllDay = "reply", []mail.Participant{{Address: by, Status: "accepted"}}, got.AllDay
	want.Status, want.Location, want.Recurrence = "", "", ""
	want.Start, want.End, want.RecurrenceID = got.Start, got.End, inUTC(c.RecurrenceID)
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s\n%s", diff, text)
	}
}

// inUTC returns a time as a reply has it.
func inUTC(t *mail.CalendarTime) *mail.CalendarTime {
	if t == nil || t.UTC == nil {
		return t
	}
	return &mail.CalendarTime{Local: t.UTC.Format("2006-01-02T15:04:05"), Zone: "UTC", UTC: t.UTC}
}
