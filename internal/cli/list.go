package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) listCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "list", Short: "Say who may be written to, and who may write"},
		p.listAddCommand(), p.listListCommand(), p.listDeleteCommand())
}

func (p Program) listAddCommand() *cobra.Command {
	var (
		inbox     string
		direction = gen.ListDirectionOutbound
	)
	cmd := &cobra.Command{
		Use:   "add ACTION PATTERN",
		Short: "Allow, block or ask about an address or a domain",
		Long: "Adds an entry to a list. ACTION is allow, block or approve; PATTERN is an address, *@domain, or *@*.domain for the subdomains.\n" +
			"Outbound entries are about recipients, inbound entries about senders.",
		Example: "  postroom list add block '*@rival.example'\n  postroom list add approve '*@shop.example' --direction inbound --inbox signup@agents.example.com",
		Args:    Wants(2),
	}
	choose(cmd, &direction, "direction", "mail that it is about", direction.AllValues())
	cmd.Flags().StringVar(&inbox, "inbox", "", "only for this inbox, by ID or address (default: all inboxes, which needs the scope admin)")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		action := choice[gen.ListAction]{new(gen.ListAction), gen.ListAction("").AllValues()}
		if err := action.Set(args[0]); err != nil {
			return UsageError{err}
		}
		req := &gen.ListEntryCreate{Direction: direction, Action: *action.at, Pattern: args[1]}
		if inbox != "" {
			id, err := a.inboxID(ctx, inbox)
			if err != nil {
				return err
			}
			req.InboxID.SetTo(id)
		}
		e, err := a.CreateListEntry(ctx, req, gen.CreateListEntryParams{})
		if err != nil {
			return err
		}
		return a.show(e, func(t *table) { t.row(listRow(*e)...) })
	})
}

func listRow(e gen.ListEntry) []string {
	return []string{e.ID, e.Direction, e.Action, e.Pattern, e.InboxID.Or("all inboxes")}
}

func (p Program) listListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Aliases: []string{"show"}, Short: "List the entries, newest first", Args: cobra.NoArgs}
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.ListEntries(ctx, gen.ListListEntriesParams{Limit: pageOf(limit)})
		return showList(a.output, all, limit, []string{"ID", "DIRECTION", "ACTION", "PATTERN", "INBOX"}, listRow)
	})
}

func (p Program) listDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete ENTRY", Short: "Delete an entry, by ID; the key needs the scope admin", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		if err := p.confirm(cmd, "list entry "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteListEntry(ctx, gen.DeleteListEntryParams{ListID: args[0]})
		return a.showDeleted(gone, err, "list entry "+args[0])
	})
}
