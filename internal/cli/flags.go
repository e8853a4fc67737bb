package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// choice is a flag value that must be one of a set of words.
type choice[T ~string] struct {
	at  *T
	all []T
}

func (c choice[T]) String() string {
	if c.at == nil {
		return ""
	}
	return string(*c.at)
}

func (c choice[T]) Set(s string) error {
	if !slices.Contains(c.all, T(s)) {
		return fmt.Errorf("use one of %s", strings.Join(words(c.all), ", "))
	}
	*c.at = T(s)
	return nil
}

func (c choice[T]) Type() string { return "word" }

func words[T ~string](all []T) []string {
	var texts []string
	for _, v := range all {
		texts = append(texts, string(v))
	}
	return texts
}

// choose adds a flag that accepts the values in all and completes them in the
// shell.
func choose[T ~string](cmd *cobra.Command, name, usage string, def T, all []T) *T {
	at := &def
	cmd.Flags().Var(choice[T]{at, all}, name, usage+": "+strings.Join(words(all), ", "))
	complete(cmd, name, all)
	return at
}

// complete lets the shell complete the values of a flag.
func complete[T ~string](cmd *cobra.Command, name string, all []T) {
	// cannot fail: the flag exists
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words(all), cobra.ShellCompDirectiveNoFileComp))
}

// moment is a flag value that is a time, or a duration before now.
type moment struct{ at *time.Time }

func (m moment) String() string {
	if m.at == nil || m.at.IsZero() {
		return ""
	}
	return m.at.Format(time.RFC3339)
}

func (m moment) Set(s string) error {
	if ago, err := parseSpan(s); err == nil {
		*m.at = time.Now().Add(-ago)
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("use a time such as 2030-01-31T08:00:00Z, or a duration before now, such as 10m")
	}
	*m.at = t
	return nil
}

func (m moment) Type() string { return "time" }

func momentFlag(cmd *cobra.Command, name, usage string) *time.Time {
	at := new(time.Time)
	cmd.Flags().Var(moment{at}, name, usage)
	return at
}

// span is a flag value that is a duration: a number with units, such as 1h30m or 7d,
// or a number of seconds.
type span struct{ at *time.Duration }

func (v span) String() string {
	if v.at == nil || *v.at == 0 {
		return ""
	}
	return v.at.String()
}

func (v span) Set(s string) error {
	d, err := parseSpan(s)
	if err != nil {
		return err
	}
	*v.at = d
	return nil
}

func (v span) Type() string { return "duration" }

func spanFlag(cmd *cobra.Command, name string, def time.Duration, usage string) *time.Duration {
	cmd.Flags().Var(span{&def}, name, usage)
	return &def
}

var errSpan = errors.New("use a duration such as 90s, 10m, 24h or 7d; a number alone is in seconds")

// maxSpan is the longest duration: 100 years.
const maxSpan = 100 * 365 * 24 * time.Hour

func parseSpan(s string) (time.Duration, error) {
	number, unit := s, time.Second
	if days, ok := strings.CutSuffix(s, "d"); ok {
		number, unit = days, 24*time.Hour
	}
	d, err := time.ParseDuration(s)
	if n, failed := strconv.ParseFloat(number, 64); failed == nil && n >= 0 && n <= maxSpan.Seconds() {
		d, err = time.Duration(min(n*float64(unit), float64(maxSpan))), nil
	}
	if err != nil || d < 0 {
		return 0, errSpan
	}
	return d, nil
}

// limitFlag adds the flag that limits how many entries of a list are shown.
func limitFlag(cmd *cobra.Command) *int {
	limit := 20
	cmd.Flags().Var((*limitValue)(&limit), "limit", "maximum number of entries")
	return &limit
}

type limitValue int

func (v *limitValue) String() string { return fmt.Sprint(int(*v)) }

func (v *limitValue) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 1 {
		return fmt.Errorf("use a number from 1")
	}
	*v = limitValue(n)
	return nil
}

func (v *limitValue) Type() string { return "number" }

// pageOf returns the page size for fetching a list, at most the number of entries
// to show.
func pageOf(limit int) gen.OptInt { return gen.NewOptInt(min(limit+1, 100)) }

// opt returns an optional string that is left out when empty.
func opt(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return client.Text(s)
}

// body holds the flags for the content of a message.
type body struct {
	text, textFile, htmlFile string
	attach                   []string
	read                     struct {
		text, html gen.OptNilString
		files      []file
	}
}

// file is an attachment.
type file struct {
	name    string
	content []byte
}

func (b *body) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.text, "text", "", "text body")
	cmd.Flags().StringVar(&b.textFile, "text-file", "", "file with the text body; - for standard input")
	cmd.Flags().StringVar(&b.htmlFile, "html-file", "", "file with the HTML body; - for standard input")
	cmd.Flags().StringArrayVar(&b.attach, "attach", nil, "file to attach, up to 10 times")
	cmd.MarkFlagsMutuallyExclusive("text", "text-file")
	cmd.MarkFlagsOneRequired("text", "text-file", "html-file")
}

// load reads the files that the flags name.
func (b *body) load(p Program) error {
	if b.text != "" {
		b.read.text = client.Body(b.text)
	}
	if err := errors.Join(p.readInto(&b.read.text, b.textFile), p.readInto(&b.read.html, b.htmlFile)); err != nil {
		return err
	}
	for _, name := range b.attach {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		b.read.files = append(b.read.files, file{filepath.Base(name), content})
	}
	return nil
}

// readInto reads the file with that name, if it has one, into a field.
func (p Program) readInto(field *gen.OptNilString, name string) error {
	if name == "" {
		return nil
	}
	text, err := p.readFile(name)
	if err == nil {
		field.SetTo(string(text))
	}
	return err
}

// readFile reads a whole file, or stdin.
func (p Program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.Stdin)
	}
	return os.ReadFile(name)
}

func (b *body) attachments() gen.MessageAttachmentInputs {
	var all gen.MessageAttachmentInputs
	for _, f := range b.read.files {
		all = append(all, gen.MessageAttachmentInput{Filename: f.name, Content: f.content})
	}
	return all
}

// given sets an optional field of a request, unless the value is zero.
func given[T comparable](field interface{ SetTo(v T) }, v T) {
	if v != *new(T) {
		field.SetTo(v)
	}
}

// optNil is opt for a field that may also be null.
func optNil(s string) gen.OptNilString {
	if s == "" {
		return gen.OptNilString{}
	}
	return gen.NewOptNilString(s)
}
