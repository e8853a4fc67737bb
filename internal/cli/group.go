package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/nearname"
)

// Group turns cmd into a command that only has subcommands. Alone it shows its
// help; an unknown subcommand is an error. Without this, cobra would show the
// help for a misspelled subcommand and exit with 0.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, sub.Name())
			}
		}
		return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), nearname.Hint(args[0], names))
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
