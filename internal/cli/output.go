package cli

import (
	"bytes"
	"context"
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

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

// output prints results for people or as JSON. It escapes characters that control
// a terminal or change the text direction, for example \x1b or \u202e, so that a
// message can only be read.
type output struct {
	w        io.Writer
	json     bool
	terminal bool   // w is a terminal
	query    *query // selects from the JSON; nil for all of it
}

// show writes the result v of a call as JSON, or calls human with a table to fill. It
// returns the error of the call if that is not nil.
func (o output) show(v any, err error, human func(t *table)) error {
	if err != nil {
		return err
	}
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
	if o.query != nil {
		return o.query.write(o, b.Bytes())
	}
	_, err := io.WriteString(o.w, harmlessJSON(b.String()))
	return err
}

// table aligns its rows in columns.
type table struct {
	w     *tabwriter.Writer
	below io.Writer // destination of w
	err   error
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = clean(c)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t")) // reported by Flush
}

// field adds a row unless the value is empty.
func (t *table) field(name, value string) {
	if value != "" {
		t.row(name, value)
	}
}

// text adds a multi-line text after an empty line. It must come last.
func (t *table) text(s string) {
	if s == "" {
		return
	}
	t.err = t.w.Flush()
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.below, "\n%s\n", cleanText(strings.TrimRight(s, "\r\n")))
	}
}

// listing turns cmd into a command that lists what find finds, with a row for each.
func listing[T any](p Program, cmd *cobra.Command, header []string, row func(T) []string, find func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[T, error]) *cobra.Command {
	limit := limitFlag(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		return showList(a.output, find(ctx, a, pageOf(*limit)), *limit, header, row)
	})
}

// showList writes up to limit entries of a list as a JSON array or a table.
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
	return o.show(list, nil, func(t *table) {
		t.row(header...)
		for _, v := range list {
			t.row(row(v)...)
		}
		if more {
			t.row(fmt.Sprintf("There are more entries. Use --limit to show more than %d.", limit))
		}
	})
}

// save writes to a new file, or to the output if name is "" or "-" and the output
// is not a terminal.
func (o output) save(name string, r io.Reader) (err error) {
	if name == "" || name == "-" {
		if o.terminal {
			return UsageError{errors.New("raw content is not written to a terminal: use --output, or redirect it")}
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

// clean returns s on one line, safe for a terminal.
func clean(s string) string {
	return escape(s, func(r rune) bool { return false })
}

// cleanText is like clean, but keeps line breaks.
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

// acts reports whether r has an effect on a terminal: control characters
// (ECMA-48), line ends, and marks of text direction.
func acts(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// harmlessJSON escapes these characters in a line of JSON as \u sequences. They
// can only be in strings.
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

// short truncates a text to n characters.
func short(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// when formats a time for people.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func whenNil(t gen.NilDateTime) string {
	if at, ok := t.Get(); ok {
		return when(at)
	}
	return ""
}

// mailbox formats an address as in a message header.
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

// Counted returns "1 message" or "2 messages".
func Counted[N ~int | ~int64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "x"):
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
