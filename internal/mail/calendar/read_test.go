package calendar_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/calendar"
	"github.com/postroom/postroom/internal/mail/mime"
)

var update = flag.Bool("update", false, "update the golden files")

// Invitations in the shape that Google, Exchange, Apple, Fastmail and others write, and two
// odd ones, give the values in the JSON file beside each.
func TestInvitationsReadRight(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.eml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".eml"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := calendar.Read(textOf(t, raw))
			lf, _ := calendar.Read(textOf(t, bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))))
			if diff := cmp.Diff(got, lf); diff != "" {
				t.Errorf("LF line ends read differently (-CRLF +LF)\n%s", diff)
			}
			golden := strings.TrimSuffix(file, ".eml") + ".json"
			if *update {
				data, err := json.MarshalIndent(got, "", "  ")
				if err == nil {
					err = os.WriteFile(golden, append(data, '\n'), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			var want *mail.Calendar
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func textOf(t *testing.T, raw []byte) string {
	t.Helper()
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return m.Calendar
}

// wrapped returns a calendar with these lines in its event.
func wrapped(lines string) string {
	return "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nUID:1\n" + lines + "\nEND:VEVENT\nEND:VCALENDAR\n"
}

func TestTimesOfEvents(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, lines, start, end string }{
		{"none", "SUMMARY:x", "", ""},
		{"in UTC", "DTSTART:20261110T090000Z", "2026-11-10T09:00:00 UTC 2026-11-10T09:00:00Z", ""},
		{"a day", "DTSTART:20261110", "2026-11-10", "2026-11-11"},
		{"days", "DTSTART;VALUE=DATE:20261110\nDURATION:P2D", "2026-11-10", "2026-11-12"},
		{"no zone", "DTSTART:20261110T090000\nDURATION:-PT5M", "2026-11-10T09:00:00", ""},
		{"an end of another kind", "DTSTART:20261110T090000Z\nDTEND;VALUE=DATE:20261111", "2026-11-10T09:00:00 UTC 2026-11-10T09:00:00Z", ""},
		{"a duration in weeks", "DTSTART:20261110T090000Z\nDURATION:P1W", "2026-11-10T09:00:00 UTC 2026-11-10T09:00:00Z", "2026-11-17T09:00:00 UTC 2026-11-17T09:00:00Z"},
		{
			"a day when clocks change", "DTSTART;TZID=Europe/Berlin:20261024T120000\nDURATION:P1D",
			"2026-10-24T12:00:00 Europe/Berlin 2026-10-24T10:00:00Z", "2026-10-25T12:00:00 Europe/Berlin 2026-10-25T11:00:00Z",
		},
		{"Windows in capitals", "DTSTART;TZID=PACIFIC STANDARD TIME:20260701T080000", "2026-07-01T08:00:00 America/Los_Angeles 2026-07-01T15:00:00Z", ""},
		{"Exchange's UTC", "DTSTART;TZID=\"tzone://Microsoft/Utc\":20260701T080000", "2026-07-01T08:00:00 UTC 2026-07-01T08:00:00Z", ""},
		{"with separators", "DTSTART:2026-11-10T09:00:00Z", "2026-11-10T09:00:00 UTC 2026-11-10T09:00:00Z", ""},
		{"an unknown zone", "DTSTART;TZID=Mars/Utopia:20260701T080000", "2026-07-01T08:00:00 Mars/Utopia", ""},
		{"a path as zone", "DTSTART;TZID=../../etc/passwd:20260701T080000", "2026-07-01T08:00:00 ../../etc/passwd", ""},
		{"a huge duration", "DTSTART:20261110T090000Z\nDURATION:P99999999999D", "2026-11-10T09:00:00 UTC 2026-11-10T09:00:00Z", ""},
		{"no date", "DTSTART:tomorrow", "", ""},
		{"the last year", "DTSTART;TZID=America/New_York:99991231T235959\nDURATION:P9W", "", ""},
		{"the first year", "DTSTART;TZID=Asia/Tokyo:00000101T000000", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := calendar.Read(wrapped(tt.lines))
			if start, end := inWords(c.Start), inWords(c.End); start != tt.start || end != tt.end {
				t.Errorf("from %q to %q, want %q to %q", start, end, tt.start, tt.end)
			}
		})
	}
}

func inWords(t *mail.CalendarTime) string {
	if t == nil {
		return ""
	}
	s := t.Local
	if t.Zone != "" {
		s += " " + t.Zone
	}
	if t.UTC != nil {
		s += " " + t.UTC.Format("2006-01-02T15:04:05Z")
	}
	return s
}

func TestNoEventIsNoInvitation(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\ufeff", "BEGIN:VCALENDAR\nX-WR-CALNAME:Mine\nEND:VCALENDAR\n", "hello",
		"BEGIN:VCALENDAR\nBEGIN:VTODO\nUID:1\nEND:VTODO\nEND:VCALENDAR\n", "BEGIN:VCALENDAR\nBEGIN:X\nBEGIN:VEVENT\nEND:X\n",
	} {
		if c, cut := calendar.Read(text); c != nil || cut {
			t.Errorf("%q reads as %v", text, c)
		}
	}
}

func TestAttendeesAreBounded(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{"many": "", "long": strings.Repeat("n", 1000)} {
		var b strings.Builder
		for i := range 2000 {
			b.WriteString("ATTENDEE;CN=" + long + strconv.Itoa(i) + ":mailto:a" + strconv.Itoa(i) + "@example.org\n")
		}
		c, cut := calendar.Read(wrapped(b.String()))
		data, err := json.Marshal(c)
		if err != nil || !cut || len(c.Attendees) > calendar.MaxAttendees || len(c.Attendees) < 200 || len(data) > 100<<10 {
			t.Errorf("%s: %d attendees, %d bytes, cut %t, %v", name, len(c.Attendees), len(data), cut, err)
		}
	}
}

// linearReaders are the exported functions that read mail.
func linearReaders() []lineartest.Reader {
	units := []string{"\\", "BEGIN:A\n", "BEGIN:VEVENT\nDTSTART;TZID=a/b/c:20260101T000000\nEND:VEVENT\n", `;A="`, `"`, "BEGIN:VTIMEZONE\nTZID:" + lineartest.Number + "\nEND:VTIMEZONE\n", "ATTENDEE:mailto:a" + lineartest.Number + "@b.example\n"}
	var all []lineartest.Reader
	for name, before := range map[string]string{"lines": "", "a text": "SUMMARY:", "parameters": "ATTENDEE", "a name": "ATTENDEE;CN=", "a zone": "DTSTART;TZID="} {
		all = append(all, lineartest.Reader{Name: "Read " + name, Units: units, Read: func(s string) { calendar.Read(wrapped(before + s)) }})
	}
	return all
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), map[string]string{"Reply": "writes a calendar", "WhyNoReply": "reads a few fields"})
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.eml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m.Calendar)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, _ := calendar.Read(strings.ToValidUTF8(text, "\ufffd"))
		if c == nil {
			return
		}
		data, err := json.Marshal(c)
		if err != nil || len(data) > 200<<10 {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		if c.UID == "" || c.Organizer == nil {
			return
		}
		answersRight(t, c)
	})
}
