package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes cmd one that only holds others: alone it shows its help, and a
// name that none of them has is an error. Without that a misspelt command would
// show the help and exit with 0, as if it had been done.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
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

// wants makes n arguments, which the usage line of the command names, a must.
func wants(n int) cobra.PositionalArgs {
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
