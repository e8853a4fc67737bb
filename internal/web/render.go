package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/store"
)

//go:embed templates
var templateFiles embed.FS

// shared are the templates that every page includes.
var shared = []string{"templates/layout.html", "templates/parts.html", "templates/mail-parts.html"}

// readPages returns how each page is made, together with the layout. A page is parsed
// when it is first shown: all of them take several megabytes.
func (d *Dashboard) readPages() (map[string]func() (*template.Template, error), error) {
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]func() (*template.Template, error){}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		pages[name] = sync.OnceValues(func() (*template.Template, error) {
			return template.New(name).Funcs(d.functions()).Funcs(mailFunctions).ParseFS(templateFiles, append(slices.Clone(shared), file)...)
		})
	}
	return pages, nil
}

// functions are the template functions.
func (d *Dashboard) functions() template.FuncMap {
	return template.FuncMap{
		"asset":        d.assetLink,
		"nav":          navigationOf,
		"on":           onPage,
		"entryChoices": func() []string { return entryChoices },
		"entryWords":   func(choice string) string { return entryWords[choice] },
		"limitFields":  func() []limitField { return limitFields },
		"consentDays":  func() []string { return consentDays },
		"redirectHost": oauth.Host,
		"time":         func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" },
		"ago":          func(t time.Time) string { return ago(d.now().Sub(t)) },
		"iso":          func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count":        count,
		"means":        func(name string) string { return meanings[name] },
		"ended":        ended,
		"zoneLine":     zoneLine,
		"zoneName":     zoneName,
		"recordUse":    func(record string) string { return recordUses[record] },
		"words":        func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"date":         func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"dict":         dict,
		"list":         func(all ...string) []string { return all },
		"without": func(all []string, one string) []string {
			return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
		},
		"used":    usedText,
		"marked":  marked,
		"has":     func(all []string, one string) bool { return slices.Contains(all, one) },
		"tone":    tone,
		"meaning": func(status string) string { return statusMeanings[status] },
		"label":   label,
		"icon":    icon,
		"roles":   func() []store.Role { return store.Roles },
		"undo":    func() float64 { return d.cfg.Undo.Seconds() },
		"onDay":   onDay,
	}
}

// onDay formats a time of an invitation as its zone has it, or its date less some days.
func onDay(t gen.CalendarTime, less int) string {
	if d, err := time.Parse(time.DateOnly, t.Local); err == nil {
		return d.AddDate(0, 0, -less).Format("Mon 2 Jan 2006")
	}
	at, _ := time.Parse("2006-01-02T15:04:05", t.Local)
	return at.Format("Mon 2 Jan 2006, 15:04 ") + t.Zone.Value
}

// label returns the value of a tag as text: a string without its quotes, anything
// else as JSON.
func label(value jx.Raw) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// dict returns a map of names and values, for templates with several arguments.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// ago formats the time since a moment in the largest unit that fits.
func ago(d time.Duration) string {
	switch {
	case d < -time.Minute:
		return "in the future"
	case d < time.Minute:
		return "just now"
	}
	return lasting(d) + " ago"
}

// lasting formats a duration in the largest unit that fits, at least a minute.
func lasting(d time.Duration) string {
	switch {
	case d < time.Hour:
		return plural(max(1, int(d/time.Minute)), "minute", "minutes")
	case d < 24*time.Hour:
		return plural(int(d/time.Hour), "hour", "hours")
	}
	return plural(int(d/(24*time.Hour)), "day", "days")
}

// count formats a number in groups of three digits.
func count(n any) string {
	var out strings.Builder
	s := fmt.Sprint(n)
	for i, digit := range s {
		if left := len(s) - i; i > 0 && left%3 == 0 {
			out.WriteRune('\u2009')
		}
		out.WriteRune(digit)
	}
	return out.String()
}
