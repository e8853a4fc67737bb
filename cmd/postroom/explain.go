package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mime"
)

func (p program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FILE]",
		Short: "Show why a raw message has its code and link",
		Long: "Show why a raw message has its code and link: each candidate with its points and evidence.\n" +
			"The message is a file with its header, or the standard input. No server is needed.",
		Example: "  postroom explain message.eml\n  postroom message raw msg_dastdgqeanngwxg1 | postroom explain",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in := io.NopCloser(p.Stdin)
			if len(args) == 1 && args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return cli.UsageError{Err: err}
				}
				in = file
			}
			m, err := mime.Parse(in, mail.DefaultLimits())
			if err = errors.Join(err, in.Close()); err != nil {
				return err
			}
			return printExplanation(p.Stdout, extract.Explain(m.Subject, m.Text, m.HTML, mail.DefaultLimits()))
		},
	}
}

// printExplanation writes one line for each candidate, so that a user can
// report it.
func printExplanation(w io.Writer, why extract.Explanation) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	print := func(title, reason string, list []extract.Candidate) {
		_, _ = fmt.Fprintf(t, "%s: %s\n", title, reason) // Flush returns the error
		for _, c := range list {
			var signs []string
			for _, e := range c.Evidence {
				if e.Weight == 0 {
					signs = append(signs, e.Sign)
					continue
				}
				signs = append(signs, fmt.Sprintf("%+d %s", e.Weight, e.Sign))
			}
			_, _ = fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\n", c.Result, c.Score, printable(c.Value), c.Where, strings.Join(signs, "; "))
		}
	}
	print("otp", why.OTP, why.Codes)
	print("action_link", why.Link, why.Links)
	return t.Flush()
}

// printable replaces characters that could control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}
