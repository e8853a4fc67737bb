package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/gen"
)

// output shows answers, to people or as JSON. Nothing in a mail can do more to a
// terminal than be read: what would move its cursor, or turn the direction of
// what is read, is written as \x1b or \u202e.
type output struct {
	w        io.Writer
	json     bool
	terminal bool // w is one
}

// show writes v as JSON, or calls human with a table to write rows into.
func (o output) show(v any, human func(t *table)) error {
	if o.json {
		return o.writeJSON(v)
	}
	t := &table{w: tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0), below: o.w}
	human(t)
	return errors.Join(t.w.Flush(), t.err)
}

// writeJSON writes v on one line.
func (o output) writeJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(o.w, harmlessJSON(b.String()))
	return err
}

// table lines its rows up.
type table struct {
	w     *tabwriter.Writer
	below io.Writer // what w writes to
	err   error
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = clean(c)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t")) // kept by w until Flush
}

// field is a row that is left out when it says nothing.
func (t *table) field(name, value string) {
	if value != "" {
		t.row(name, value)
	}
}

// text is a text of several lines, after an empty one. It comes last.
func (t *table) text(s string) {
	if s == "" {
		return
	}
	t.err = t.w.Flush()
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.below, "\n%s\n", cleanText(strings.TrimRight(s, "\r\n")))
	}
}

// showList writes what a list has, up to limit, as a JSON array or a table.
func showList[T any](o output, all iter.Seq2[T, error], limit int, header []string, row func(T) []string) error {
	list := []T{}
	more := false
	for v, err := range all {
		if err != nil {
			return err
		}
		if more = len(list) == limit; more {
			break
		}
		list = append(list, v)
	}
	return o.show(list, func(t *table) {
		t.row(header...)
		for _, v := range list {
			t.row(row(v)...)
		}
		if more {
			t.row(fmt.Sprintf("There are more entries. Use --limit to show more than %d.", limit))
		}
	})
}

// save writes bytes to a file that is not there yet, or, for no name and "-", to
// the output, unless that is a terminal.
func (o output) save(name string, r io.Reader) (err error) {
	if name == "" || name == "-" {
		if o.terminal {
			return usageError{errors.New("raw content is not written to a terminal: use --output, or redirect it")}
		}
		_, err = io.Copy(o.w, r)
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, r)
	return err
}

// clean is a text on one line that does nothing to a terminal.
func clean(s string) string {
	return escape(s, func(r rune) bool { return false })
}

// cleanText is one of several lines.
func cleanText(s string) string {
	return escape(strings.ReplaceAll(s, "\r\n", "\n"), func(r rune) bool { return r == '\n' || r == '\t' })
}

func escape(s string, but func(rune) bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case !acts(r) || but(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf*2:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// acts says whether a terminal does something with r but show it: control
// characters of both ranges (ECMA-48), ends of lines, and marks that turn the
// direction of text.
func acts(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// harmlessJSON is one line of JSON with such characters as \u escapes, which
// only strings can have.
func harmlessJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		if acts(r) && r != '\n' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// short cuts a text to n characters.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// when is a moment for people.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func whenNil(t gen.NilDateTime) string {
	if at, ok := t.Get(); ok {
		return when(at)
	}
	return ""
}

// mailbox is an address as it stands in a mail.
func mailbox(a gen.MailAddress) string {
	if name := a.Name.Or(""); name != "" {
		return name + " <" + a.Email + ">"
	}
	return a.Email
}

func mailboxes(all []gen.MailAddress) string {
	var texts []string
	for _, a := range all {
		texts = append(texts, mailbox(a))
	}
	return strings.Join(texts, ", ")
}
