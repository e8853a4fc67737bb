package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

// InboxCommands returns the subcommands of `postroom inbox` that call a server.
func (p Program) InboxCommands() []*cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List inboxes, newest first"}
	return []*cobra.Command{
		p.inboxCreateCommand(),
		listing(p, list, []string{"ID", "ADDRESS", "STATUS", "POLICY", "LAST MESSAGE"}, func(in gen.Inbox) []string {
			return []string{in.ID, in.Address, in.Status, in.SendPolicy, whenNil(in.LastMessageAt)}
		}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Inbox, error] {
			return a.Inboxes(ctx, gen.ListInboxesParams{Limit: page})
		}),
		p.inboxGetCommand(), p.inboxUpdateCommand(), p.inboxDeleteCommand(),
	}
}

func (p Program) inboxCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create [NAME]",
		Short:   "Create an inbox, with the given or a random name",
		Example: "  postroom inbox create signup\n  postroom inbox create --lasts 1h --json",
	}
	domain := cmd.Flags().String("domain", "", "verified domain (default: the mail domain of the server)")
	displayName := cmd.Flags().String("display-name", "", "display name of the sender")
	policy := choose(cmd, "policy", "send policy", "", gen.SendPolicy("").AllValues())
	retention := cmd.Flags().Int("retention-days", 0, "retention of message content in days, 1 to 30 unless the server allows more (default: 7)")
	aliases := cmd.Flags().StringSlice("alias", nil, "local part of a further address on the domain (repeatable)")
	catchAll := cmd.Flags().Bool("catch-all", false, "receive mail for all other addresses on the verified domain")
	lasts := spanFlag(cmd, "lasts", 0, "time until the inbox expires, such as 24h (default: never)")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		in := gen.InboxCreate{Domain: opt(*domain), Aliases: localParts(*aliases)}
		if len(args) == 1 {
			in.Name.SetTo(args[0])
		}
		given(&in.DisplayName, *displayName)
		given(&in.SendPolicy, *policy)
		given(&in.RetentionDays, *retention)
		given(&in.CatchAll, *catchAll)
		if *lasts != 0 {
			in.ExpiresAt.SetTo(time.Now().Add(*lasts))
		}
		made, err := a.NewInbox(ctx, in)
		return a.show(made, err, func(t *table) { t.row(made.ID, made.Address) })
	})
}

func localParts(names []string) []gen.LocalPart {
	var all []gen.LocalPart
	for _, name := range names {
		all = append(all, gen.LocalPart(name))
	}
	return all
}

func (p Program) inboxGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get INBOX", Short: "Show an inbox, by ID or address"}
	return p.named(cmd, (*api).inboxID, func(ctx context.Context, a *api, id string) error {
		in, err := a.GetInbox(ctx, gen.GetInboxParams{InboxID: id})
		return a.show(in, err, func(t *table) {
			t.row("ID", in.ID)
			t.row("Address", in.Address)
			t.field("Name", in.DisplayName.Or(""))
			t.field("Aliases", strings.Join(in.Aliases, ", "))
			if in.CatchAll {
				t.row("Catch-all", "all other addresses on "+in.Domain)
			}
			t.row("Status", in.Status)
			t.row("Policy", in.SendPolicy)
			t.row("Keeps mail", fmt.Sprintf("%d days", in.RetentionDays))
			t.row("Created", when(in.CreatedAt))
			t.field("Last message", whenNil(in.LastMessageAt))
			t.field("Expires", whenNil(in.ExpiresAt))
		})
	})
}

func (p Program) inboxUpdateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "update INBOX",
		Short:   "Change what the flags name of an inbox, by ID or address",
		Example: "  postroom inbox update signup@agents.example.com --alias sales,orders\n  postroom inbox update signup@agents.example.com --catch-all=false",
	}
	displayName := cmd.Flags().String("display-name", "", `display name of the sender; "" for none`)
	policy := choose(cmd, "policy", "send policy", "", gen.SendPolicy("").AllValues())
	retention := cmd.Flags().Int("retention-days", 0, "retention of message content in days, 1 to 30 unless the server allows more")
	aliases := cmd.Flags().StringSlice("alias", nil, `all local parts of further addresses on the domain; "" for none`)
	catchAll := cmd.Flags().Bool("catch-all", false, "receive mail for all other addresses on the verified domain")
	lasts := spanFlag(cmd, "lasts", 0, "time until the inbox expires, such as 24h; 0 for never")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		var in gen.InboxUpdate
		changed := 0
		for name, set := range map[string]func(){
			"display-name": func() {
				if in.DisplayName.SetTo(*displayName); *displayName == "" {
					in.DisplayName.SetToNull()
				}
			},
			"policy":         func() { in.SendPolicy.SetTo(*policy) },
			"retention-days": func() { in.RetentionDays.SetTo(*retention) },
			"alias":          func() { in.Aliases = append([]gen.LocalPart{}, localParts(*aliases)...) },
			"catch-all":      func() { in.CatchAll.SetTo(*catchAll) },
			"lasts": func() {
				if in.ExpiresAt.SetTo(time.Now().Add(*lasts)); *lasts == 0 {
					in.ExpiresAt.SetToNull()
				}
			},
		} {
			if cmd.Flags().Changed(name) {
				set()
				changed++
			}
		}
		if changed == 0 {
			return UsageError{errors.New("nothing to change: set a flag, such as --alias")}
		}
		id, err := a.inboxID(ctx, args[0])
		if err != nil {
			return err
		}
		updated, err := a.UpdateInbox(ctx, &in, gen.UpdateInboxParams{InboxID: id})
		return a.show(updated, err, func(t *table) { t.row(updated.ID, updated.Address) })
	})
}

func (p Program) inboxDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete INBOX", Short: "Delete an inbox and its messages permanently, by ID or address"}
	return p.confirmed(cmd, "inbox %s and its messages", (*api).inboxID, func(ctx context.Context, a *api, id, _ string) error {
		in, err := a.DeleteInbox(ctx, gen.DeleteInboxParams{InboxID: id})
		return a.show(in, err, func(t *table) {
			t.row(fmt.Sprintf("Deleted %s. Its address %s cannot be used again.", in.ID, in.Address))
		})
	})
}
