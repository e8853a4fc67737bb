package calendar

import (
	_ "embed" // for zones.txt
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones, on systems without them

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

const (
	dateForm  = "20060102"
	timeForm  = "20060102T150405"
	localDate = time.DateOnly
	localTime = "2006-01-02T15:04:05"
)

// maxDuration is the longest event in days whose end is computed.
const maxDuration = 10 * 366

// isDate reports whether a time is a date.
func isDate(t *mail.CalendarTime) bool { return len(t.Local) == len(localDate) }

// time reads a date or time. It returns nil for what is neither.
func (r *reader) time(l line) *mail.CalendarTime {
	value := strings.NewReplacer("-", "", ":", "").Replace(strings.ToUpper(strings.TrimSpace(plaintext.Truncate(l.value, 40))))
	utc := strings.HasSuffix(value, "Z")
	value = strings.TrimSuffix(value, "Z")
	if value < "1000" || value > "9000" { // so that its instant and its end have a year of four digits
		return nil
	}
	if d, err := time.Parse(dateForm, value); err == nil {
		return &mail.CalendarTime{Local: d.Format(localDate)}
	}
	if len(value) == len("20060102T1504") {
		value += "00" // without seconds
	}
	t, err := time.Parse(timeForm, value)
	if err != nil {
		return nil
	}
	if utc {
		return &mail.CalendarTime{Local: t.Format(localTime), Zone: "UTC", UTC: &t}
	}
	name := l.param("TZID")
	if name == "" {
		name = r.zone
	}
	zone, in := r.find(name)
	out := &mail.CalendarTime{Local: t.Format(localTime), Zone: zone}
	if in != nil {
		at := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, in).UTC()
		out.UTC = &at
	}
	return out
}

// after returns the end of an event without one: after its duration or, for a date, at the
// end of the day. It returns nil if there is nothing to compute it from.
func after(start *mail.CalendarTime, duration string) *mail.CalendarTime {
	days, rest, ok := parseDuration(duration)
	if !ok && !isDate(start) {
		return nil
	}
	if isDate(start) {
		d, _ := time.Parse(localDate, start.Local) // we wrote it
		return &mail.CalendarTime{Local: d.AddDate(0, 0, max(days, 1)).Format(localDate)}
	}
	t, _ := time.Parse(localTime, start.Local)
	end := &mail.CalendarTime{Local: t.AddDate(0, 0, days).Add(rest).Format(localTime), Zone: start.Zone}
	if start.UTC == nil {
		return end
	}
	in, err := time.LoadLocation(start.Zone)
	if err != nil { // one with a fixed offset
		in = time.FixedZone("", int(t.Sub(*start.UTC).Seconds()))
	}
	at := start.UTC.In(in).AddDate(0, 0, days).Add(rest)
	utc := at.UTC()
	end.Local, end.UTC = at.Format(localTime), &utc
	return end
}

// parseDuration reads a duration such as P1W, P1DT12H or PT30M: days as a calendar counts
// them, and the rest.
func parseDuration(s string) (days int, rest time.Duration, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(plaintext.Truncate(s, 40))), "+"), "P")
	units := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second}
	for s = strings.ReplaceAll(s, "T", ""); s != ""; {
		end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if end <= 0 {
			return 0, 0, false
		}
		n, err := strconv.Atoi(s[:end])
		if err != nil || n > maxDuration*24*3600 {
			return 0, 0, false
		}
		switch unit := s[end]; {
		case unit == 'W':
			days += 7 * n
		case unit == 'D':
			days += n
		case units[unit] != 0:
			rest += time.Duration(n) * units[unit]
		default:
			return 0, 0, false
		}
		if days > maxDuration || rest > maxDuration*24*time.Hour {
			return 0, 0, false
		}
		s = s[end+1:]
	}
	return days, rest, ok
}

// definedZone is what a VTIMEZONE says.
type definedZone struct {
	id, iana string
	offsets  []int // the different ones, in seconds; at most two
}

func (z *definedZone) read(l line) {
	switch l.name {
	case "TZID":
		z.id = strings.TrimSpace(l.value)
	case "X-LIC-LOCATION":
		z.iana = strings.TrimSpace(l.value)
	case "TZOFFSETTO":
		t, err := time.Parse("-0700", plaintext.Truncate(strings.TrimSpace(l.value), len("-0700")))
		if _, offset := t.Zone(); err == nil && len(z.offsets) < 2 && (len(z.offsets) == 0 || z.offsets[0] != offset) {
			z.offsets = append(z.offsets, offset)
		}
	}
}

// windowsZones are the names that Windows uses, with the IANA name of each (CLDR).
//
//go:embed zones.txt
var windowsZones string

var ianaNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for s := range strings.Lines(windowsZones) {
		windows, iana, _ := strings.Cut(strings.TrimSpace(s), "=")
		names[strings.ToLower(windows)] = iana
	}
	return names
})

// find returns the name of a zone, as IANA writes it where that is known, and the zone, nil
// if it is not known.
func (r *reader) find(id string) (name string, in *time.Location) {
	if id == "" {
		return "", nil
	}
	defined := r.zones[id]
	for _, s := range []string{id, defined.iana} {
		if s = strings.Trim(strings.TrimSpace(s), `"`); ianaNames()[strings.ToLower(s)] != "" {
			s = ianaNames()[strings.ToLower(s)]
		}
		// Some programs put a prefix before the name: /example.org/20260101/Europe/Berlin.
		for parts := strings.Split(plaintext.Truncate(s, maxName), "/"); len(parts) > 0; parts = parts[1:] {
			zone := strings.Join(parts, "/")
			if zone == "" || zone == "Local" || len(parts) > 3 {
				continue
			}
			if in, err := time.LoadLocation(zone); err == nil {
				return zone, in
			}
		}
	}
	if len(defined.offsets) == 1 {
		in = time.FixedZone("", defined.offsets[0])
	}
	return shown(id, maxName), in
}
