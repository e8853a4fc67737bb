// Package calendar reads the invitations that other programs write (iCalendar, RFC 5545)
// and writes the answers to them (iTIP, RFC 5546).
//
// Reading never fails because of one damaged line. It takes linear time and keeps a
// bounded part of the text.
package calendar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Limits of what is kept. Together they keep a calendar under 100 KB.
const (
	// MaxAttendees is the most attendees that are kept.
	MaxAttendees = 500
	maxPeople    = 64 << 10 // bytes of the attendees
	maxText      = 1000     // bytes of a text
	maxName      = 200      // bytes of a name
	maxZones     = 50
)

var (
	methods  = []string{"publish", "request", "reply", "add", "cancel", "refresh", "counter", "declinecounter"}
	statuses = []string{"confirmed", "tentative", "cancelled"}
	answers  = []string{"accepted", "declined", "tentative", "delegated"}
)

// event holds the lines of a VEVENT that count: the first of each name.
type event struct {
	lines     map[string]line
	attendees []mail.Participant
	size      int
}

// reader collects what the lines of a calendar say.
type reader struct {
	method string
	zone   string // of times without one
	zones  map[string]definedZone
	first  *event // the first event
	master *event // the first that is not an exception in a series

	open    *event
	defines *definedZone
	nested  int // components inside of an event, or beside it
	cut     bool
}

// Read returns the event in the text of a calendar whose lines are unfolded, or nil if it
// has none. Of a series with exceptions it returns the series. cut reports that some
// attendees are missing.
func Read(text string) (c *mail.Calendar, cut bool) {
	r := reader{zones: map[string]definedZone{}}
	for s := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if l, ok := parseLine(strings.TrimRight(s, "\r\n")); ok {
			r.read(l)
		}
	}
	r.close()
	e := r.master
	if e == nil {
		e = r.first
	}
	if e == nil {
		return nil, false
	}
	return r.calendar(e), r.cut
}

func (r *reader) read(l line) {
	component := strings.ToUpper(strings.TrimSpace(l.value))
	switch {
	case l.name == "BEGIN" && component == "VEVENT" && r.open == nil && r.nested == 0:
		r.open = &event{lines: map[string]line{}}
	case l.name == "BEGIN" && component != "VCALENDAR":
		if component == "VTIMEZONE" && r.open == nil && r.nested == 0 {
			r.defines = &definedZone{}
		}
		r.nested++
	case l.name == "END" && (component == "VEVENT" || component == "VCALENDAR"):
		r.close()
	case l.name == "END":
		if r.nested = max(0, r.nested-1); r.nested == 0 {
			r.closeZone()
		}
	case r.defines != nil:
		r.defines.read(l)
	case r.nested > 0:
	case r.open != nil:
		r.cut = !r.open.read(l) || r.cut
	case l.name == "METHOD":
		r.method = known(l.value, methods)
	case l.name == "X-WR-TIMEZONE":
		r.zone = strings.TrimSpace(l.value)
	}
}

// close ends an event, and everything inside of it, even if its own end is missing.
func (r *reader) close() {
	e := r.open
	r.open, r.nested = nil, 0
	r.closeZone()
	if e == nil {
		return
	}
	if r.first == nil {
		r.first = e
	}
	if _, exception := e.lines["RECURRENCE-ID"]; r.master == nil && !exception {
		r.master = e
	}
}

func (r *reader) closeZone() {
	if z := r.defines; z != nil && len(r.zones) < maxZones {
		r.zones[z.id] = *z
	}
	r.defines = nil
}

// read keeps a line. It returns false if the event has too many attendees to keep it.
func (e *event) read(l line) bool {
	switch l.name {
	case "ATTENDEE":
		p, ok := participant(l)
		if !ok {
			return true
		}
		e.size += len(p.Name) + len(p.Email)
		if len(e.attendees) == MaxAttendees || e.size > maxPeople {
			return false
		}
		p.Status = "needs_action"
		if s := known(l.param("PARTSTAT"), answers); s != "" {
			p.Status = s
		}
		e.attendees = append(e.attendees, p)
	case "DTSTART", "DTEND", "DURATION", "RECURRENCE-ID", "RRULE", "UID", "SEQUENCE", "STATUS", "SUMMARY", "LOCATION", "ORGANIZER":
		if _, again := e.lines[l.name]; !again {
			e.lines[l.name] = l
		}
	}
	return true
}

func (r *reader) calendar(e *event) *mail.Calendar {
	c := &mail.Calendar{
		Method: r.method, Attendees: e.attendees, Status: known(e.lines["STATUS"].value, statuses),
		Summary: clean(e.lines["SUMMARY"].value, maxText), Location: clean(e.lines["LOCATION"].value, maxText),
		Recurrence: clean(e.lines["RRULE"].value, maxText),
	}
	if uid := unescape(strings.TrimSpace(e.lines["UID"].value)); shown(uid, maxText) == uid {
		c.UID = uid
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(e.lines["SEQUENCE"].value), 10, 32); err == nil && n > 0 {
		c.Sequence = int(n)
	}
	if o, ok := participant(e.lines["ORGANIZER"]); ok {
		c.Organizer = &o
	}
	c.Start, c.RecurrenceID = r.time(e.lines["DTSTART"]), r.time(e.lines["RECURRENCE-ID"])
	if c.Start == nil {
		return c
	}
	c.AllDay = isDate(c.Start)
	if c.End = r.time(e.lines["DTEND"]); c.End == nil || isDate(c.End) != c.AllDay {
		c.End = after(c.Start, e.lines["DURATION"].value)
	}
	return c
}

// participant reads an organizer or attendee. It returns false for one without an
// address, such as a room that only its server knows.
func participant(l line) (p mail.Participant, ok bool) {
	p.Email = strings.TrimSpace(l.value)
	if scheme, rest, found := strings.Cut(p.Email, ":"); found && strings.EqualFold(scheme, "mailto") {
		p.Email = strings.Trim(strings.TrimSpace(rest), "<>")
	}
	if mail.ValidAddress(p.Email) != nil { // Apple names a place on its server
		p.Email = strings.TrimSpace(l.param("EMAIL"))
	}
	if p.Name = shown(strings.TrimPrefix(l.param("CN"), `"`), maxName); strings.EqualFold(p.Name, p.Email) {
		p.Name = ""
	}
	return p, mail.ValidAddress(p.Email) == nil
}

// known returns s in lower case if it is one of the words, else "".
func known(s string, words []string) string {
	if s = strings.ToLower(strings.TrimSpace(s)); slices.Contains(words, s) {
		return s
	}
	return ""
}

// clean returns a text value on one line, without what nobody sees.
func clean(s string, most int) string { return shown(unescape(s), most) }

func shown(s string, most int) string {
	return plaintext.Truncate(plaintext.OneLine(plaintext.Visible(plaintext.Truncate(s, 4*most))), most)
}
