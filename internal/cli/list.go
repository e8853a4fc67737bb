package cli

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) listCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Aliases: []string{"show"}, Short: "List the entries, newest first"}
	return Group(&cobra.Command{Use: "list", Short: "Say who may be written to, and who may write"},
		p.listAddCommand(),
		listing(p, list, []string{"ID", "DIRECTION", "ACTION", "PATTERN", "INBOX"}, listRow, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.ListEntry, error] {
			return a.ListEntries(ctx, gen.ListListEntriesParams{Limit: page})
		}),
		p.deletion("delete ENTRY", "Delete an entry, by ID; the key needs the scope admin", "list entry %s", (*api).byID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteListEntry(ctx, gen.DeleteListEntryParams{ListID: id})
		}))
}

func (p Program) listAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add ACTION PATTERN",
		Short: "Allow, block or ask about an address or a domain",
		Long: "Adds an entry to a list. ACTION is allow, block or approve; PATTERN is an address, *@domain, or *@*.domain for the subdomains.\n" +
			"Outbound entries are about recipients, inbound entries about senders.",
		Example: "  postroom list add block '*@rival.example'\n  postroom list add approve '*@shop.example' --direction inbound --inbox signup@agents.example.com",
	}
	direction := choose(cmd, "direction", "mail that it is about", gen.ListDirectionOutbound, gen.ListDirection("").AllValues())
	inbox := cmd.Flags().String("inbox", "", "only for this inbox, by ID or address (default: all inboxes, which needs the scope admin)")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		action, err := oneOf(args[0], gen.ListAction("").AllValues())
		if err != nil {
			return UsageError{err}
		}
		id, err := a.inboxID(ctx, *inbox)
		if err != nil {
			return err
		}
		req := &gen.ListEntryCreate{Direction: *direction, Action: action, Pattern: args[1]}
		given(&req.InboxID, id)
		e, err := a.CreateListEntry(ctx, req, gen.CreateListEntryParams{})
		return a.show(e, err, func(t *table) { t.row(listRow(*e)...) })
	})
}

func listRow(e gen.ListEntry) []string {
	return []string{e.ID, e.Direction, e.Action, e.Pattern, e.InboxID.Or("all inboxes")}
}
