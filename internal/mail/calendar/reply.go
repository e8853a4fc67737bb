package calendar

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// ReplyType is the media type of a reply (RFC 6047 section 2.4).
const ReplyType = `text/calendar; charset=utf-8; method=REPLY`

// WhyNoReply says why there is nothing to answer in a message with this calendar, which may
// be nil. It returns "" for an invitation that Reply can answer.
func WhyNoReply(c *mail.Calendar) string {
	switch {
	case c == nil:
		return "has no invitation"
	case c.Method != "request":
		return "is not an invitation: its method is " + cmp.Or(c.Method, "missing")
	case c.Status == "cancelled":
		return "is about a cancelled event"
	case c.UID == "":
		return "has an invitation without a UID that can be repeated"
	case c.Organizer == nil:
		return "has an invitation without an organizer"
	}
	return ""
}

// Reply writes the answer of an attendee to an invitation (RFC 5546 section 3.2.3). status is accepted, declined or tentative.
func Reply(c *mail.Calendar, by mail.Address, status, comment string, at time.Time) []byte {
	var w writer
	w.line("BEGIN:VCALENDAR")
	w.line("PRODID:-//Postroom//Postroom//EN")
	w.line("VERSION:2.0")
	w.line("METHOD:REPLY")
	w.line("BEGIN:VEVENT")
	w.text("UID", c.UID)
	w.line("SEQUENCE:" + strconv.Itoa(c.Sequence))
	w.time("RECURRENCE-ID", c.RecurrenceID)
	w.line("DTSTAMP:" + at.UTC().Format(timeForm) + "Z")
	w.time("DTSTART", c.Start)
	w.time("DTEND", c.End)
	w.text("SUMMARY", c.Summary)
	w.line("ORGANIZER" + person(c.Organizer.Address))
	w.line("ATTENDEE;PARTSTAT=" + strings.ToUpper(status) + person(by))
	w.text("COMMENT", comment)
	w.line("END:VEVENT")
	w.line("END:VCALENDAR")
	return []byte(w.String())
}

// writer writes content lines.
type writer struct{ strings.Builder }

// line writes a line, folded so that none has more than 75 bytes.
func (w *writer) line(s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	for most := 75; len(s) > most; most = 74 {
		part := plaintext.Truncate(s, most)
		w.WriteString(part + "\r\n ")
		s = s[len(part):]
	}
	w.WriteString(s + "\r\n")
}

// text writes a text, if there is any.
func (w *writer) text(name, s string) {
	if s != "" {
		w.line(name + ":" + plaintext.OneLine(escape.Replace(s)))
	}
}

// time writes a time: a date, an instant in UTC, or as the invitation has it.
func (w *writer) time(name string, t *mail.CalendarTime) {
	if t == nil {
		return
	}
	local := strings.NewReplacer("-", "", ":", "").Replace(t.Local)
	switch {
	case isDate(t):
		w.line(name + ";VALUE=DATE:" + local)
	case t.UTC != nil:
		w.line(name + ":" + t.UTC.Format(timeForm) + "Z")
	case t.Zone != "":
		w.line(name + ";TZID=" + quoted(t.Zone) + ":" + local)
	default:
		w.line(name + ":" + local)
	}
}

// person returns the name and the address of a participant.
func person(a mail.Address) string {
	name := ""
	if a.Name != "" {
		name = ";CN=" + quoted(a.Name)
	}
	return name + ":mailto:" + a.Email
}

// quoted returns a parameter value (RFC 6868).
func quoted(s string) string {
	return `"` + strings.NewReplacer("^", "^^", "\n", "^n", `"`, "^'").Replace(plaintext.OneLine(s)) + `"`
}
