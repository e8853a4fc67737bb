package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

// choice is the value of a flag that is one of some words.
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

// choose adds a flag whose value is one of all, which the shell completes.
func choose[T ~string](cmd *cobra.Command, at *T, name, usage string, all []T) {
	cmd.Flags().Var(choice[T]{at, all}, name, usage+": "+strings.Join(words(all), ", "))
	// The flag is there, which is all that can be wrong.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words(all), cobra.ShellCompDirectiveNoFileComp))
}

// moment is the value of a flag that is a time, or how long ago one was.
type moment struct{ at *time.Time }

func (m moment) String() string {
	if m.at == nil || m.at.IsZero() {
		return ""
	}
	return m.at.Format(time.RFC3339)
}

func (m moment) Set(s string) error {
	if ago, err := time.ParseDuration(s); err == nil && ago >= 0 {
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

// limitFlag adds the flag that says how much of a list is shown.
func limitFlag(cmd *cobra.Command, limit *int) {
	*limit = 20
	cmd.Flags().Var((*limitValue)(limit), "limit", "maximum number of entries")
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

// pageOf is the size of the pages that a list is fetched by: no larger than what
// is shown of it.
func pageOf(limit int) gen.OptInt { return gen.NewOptInt(min(limit+1, 100)) }

// opt is an optional text that is left out when empty.
func opt(s string) gen.OptString {
	if s == "" {
		return gen.OptString{}
	}
	return client.Text(s)
}

// body are the flags of what a mail says.
type body struct {
	text, textFile, htmlFile string
	attach                   []string
	read                     struct {
		text, html gen.OptNilString
		files      []file
	}
}

// file is one to attach.
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
func (b *body) load(p program) error {
	if b.text != "" {
		b.read.text = client.Body(b.text)
	}
	for _, f := range []struct {
		name string
		into *gen.OptNilString
	}{{b.textFile, &b.read.text}, {b.htmlFile, &b.read.html}} {
		if f.name == "" {
			continue
		}
		text, err := p.readFile(f.name)
		if err != nil {
			return err
		}
		f.into.SetTo(string(text))
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

// readFile reads a file whole, or the standard input.
func (p program) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.stdin)
	}
	return os.ReadFile(name)
}

// attachments are the files as a message has them.
func (b *body) attachments() gen.MessageAttachmentInputs {
	var all gen.MessageAttachmentInputs
	for _, f := range b.read.files {
		all = append(all, gen.MessageAttachmentInput{Filename: f.name, Content: f.content})
	}
	return all
}
