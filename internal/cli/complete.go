package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

const (
	// completionTime limits how long the shell waits for names.
	completionTime = 3 * time.Second
	// mostCompletions is how many of the newest inboxes are offered.
	mostCompletions = 200
)

// completeInboxes lets the shell complete the addresses of inboxes, for an argument
// INBOX and the flag --inbox.
func (p Program) completeInboxes(cmd *cobra.Command) {
	names := func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return p.addresses(cmd, begun), cobra.ShellCompDirectiveNoFileComp
	}
	if cmd.Flags().Lookup("inbox") != nil {
		_ = cmd.RegisterFlagCompletionFunc("inbox", names) // cannot fail: the flag exists
	}
	if _, rest, _ := strings.Cut(cmd.Use, " "); strings.HasPrefix(rest, "INBOX") {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(cmd, args, begun)
		}
	}
}

// addresses returns the addresses of inboxes that begin with a text. Completion has
// no place for errors: without a server there are none.
func (p Program) addresses(cmd *cobra.Command, begun string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	a, err := p.api(cmd)
	if err != nil {
		return nil
	}
	var all []string
	seen := 0
	for in, err := range a.Inboxes(ctx, gen.ListInboxesParams{Limit: gen.NewOptInt(100)}) {
		if seen++; err != nil || seen > mostCompletions {
			break
		}
		if strings.HasPrefix(in.Address, strings.ToLower(begun)) {
			all = append(all, in.Address)
		}
	}
	return all
}
