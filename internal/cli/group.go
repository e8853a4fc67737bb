package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group turns cmd into a command that only has subcommands. Alone it shows its
// help; an unknown subcommand is an error. Without this, cobra would show the
// help for a misspelled subcommand and exit with 0.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			return fmt.Errorf("%w: did you mean %s?", err, strings.Join(like, " or "))
		}
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// Wants requires n arguments and names the missing ones from the usage line.
func Wants(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		if len(args) < n {
			return fmt.Errorf("missing argument; usage: %s", usage)
		}
		return fmt.Errorf("unexpected argument %q; usage: %s", args[n], usage)
	}
}
