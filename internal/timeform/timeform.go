// Package timeform parses the time formats that requests may use: RFC 3339, and the profiles
// of ISO 8601 that programs write instead.
package timeform

import (
	"regexp"
	"strings"
	"time"
)

// form is RFC 3339 with the seconds optional, a comma or period before the
// fraction, and the offset with or without a colon or minutes.
var form = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)?([Zz]|[+-]\d{2}(?::?\d{2})?)$`)

// Parse returns the time that s denotes; ok is false if s is not a time. A time has a date, a
// time of day and an offset from UTC. A leap second counts as the following second, like on
// clocks without leap seconds.
func Parse(s string) (t time.Time, ok bool) {
	m := form.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	day, clock, seconds, fraction, offset := m[1], m[2], m[3], m[4], strings.ReplaceAll(m[5], ":", "")
	switch {
	case offset == "Z" || offset == "z":
		offset = "+0000"
	case len(offset) == len("+00"):
		offset += "00"
	}
	leap := seconds == "60"
	if leap {
		seconds = "59"
	}
	if seconds == "" {
		seconds = "00"
	}
	if fraction == "" {
		fraction = "0"
	}
	if len(fraction) > len("123456789") {
		fraction = fraction[:len("123456789")]
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999-0700", day+"T"+clock+":"+seconds+"."+fraction+offset)
	if err == nil && leap {
		t = t.Add(time.Second)
	}
	return t, err == nil
}
