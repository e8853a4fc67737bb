package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/nearname"
)

// Group turns cmd into a command that only has subcommands. Alone it shows its
// help; an unknown subcommand is an error. Without this, cobra would show the
// help for a misspelled subcommand and exit with 0. The subcommands get the arguments of
// their usage lines.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	for _, sub := range commands {
		if sub.Args == nil {
			sub.Args = wants
		}
	}
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

// wants checks that a command gets the arguments of its usage line, in which [NAME] is
// optional, and names those that are missing or too many.
func wants(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	switch usage := strings.TrimSuffix(cmd.UseLine(), " [flags]"); {
	case len(args) > len(names):
		return fmt.Errorf("unexpected argument %q; usage: %s", args[len(names)], usage)
	case len(args) < len(names) && !strings.HasPrefix(names[len(args)], "["):
		return fmt.Errorf("missing argument; usage: %s", usage)
	}
	return nil
}
