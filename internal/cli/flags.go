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

// value is the value of a flag that parse reads. The help calls it by kind.
type value[T comparable] struct {
	at    *T
	kind  string
	parse func(string) (T, error)
}

func (v value[T]) String() string {
	if v.at == nil || *v.at == *new(T) {
		return ""
	}
	return fmt.Sprint(*v.at)
}

func (v value[T]) Set(s string) error {
	read, err := v.parse(s)
	if err == nil {
		*v.at = read
	}
	return err
}

func (v value[T]) Type() string { return v.kind }

// choose adds a flag that accepts the values in all and completes them in the
// shell.
func choose[T ~string](cmd *cobra.Command, name, usage string, def T, all []T) *T {
	read := func(s string) (T, error) { return oneOf(s, all) }
	cmd.Flags().Var(value[T]{&def, "word", read}, name, usage+": "+strings.Join(words(all), ", "))
	complete(cmd, name, all)
	return &def
}

// complete lets the shell complete the values of a flag.
func complete[T ~string](cmd *cobra.Command, name string, all []T) {
	// cannot fail: the flag exists
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words(all), cobra.ShellCompDirectiveNoFileComp))
}

func oneOf[T ~string](s string, all []T) (T, error) {
	if !slices.Contains(all, T(s)) {
		return "", fmt.Errorf("use one of %s", strings.Join(words(all), ", "))
	}
	return T(s), nil
}

func words[T ~string](all []T) []string {
	var texts []string
	for _, v := range all {
		texts = append(texts, string(v))
	}
	return texts
}

// momentFlag adds a flag for a time, or a duration before now.
func momentFlag(cmd *cobra.Command, name, usage string) *time.Time {
	at := new(time.Time)
	cmd.Flags().Var(value[time.Time]{at, "time", parseMoment}, name, usage)
	return at
}

func parseMoment(s string) (time.Time, error) {
	if ago, err := parseSpan(s); err == nil {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		err = errors.New("use a time such as 2030-01-31T08:00:00Z, or a duration before now, such as 10m")
	}
	return t, err
}

// spanFlag adds a flag for a duration: a number with units, such as 1h30m or 7d, or a
// number of seconds.
func spanFlag(cmd *cobra.Command, name string, def time.Duration, usage string) *time.Duration {
	cmd.Flags().Var(value[time.Duration]{&def, "duration", parseSpan}, name, usage)
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
	cmd.Flags().Var(value[int]{&limit, "number", parseLimit}, "limit", "maximum number of entries")
	return &limit
}

func parseLimit(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, errors.New("use a number from 1")
	}
	return n, nil
}

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
