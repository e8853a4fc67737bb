package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

// InboxCommands returns the subcommands of `postroom inbox` that call a server.
func (p Program) InboxCommands() []*cobra.Command {
	return []*cobra.Command{p.inboxCreateCommand(), p.inboxListCommand(), p.inboxGetCommand(), p.inboxUpdateCommand(), p.inboxDeleteCommand()}
}

func (p Program) inboxCreateCommand() *cobra.Command {
	var (
		domain, displayName string
		policy              gen.SendPolicy
		retention           int
		aliases             []string
		catchAll            bool
		lasts               time.Duration
	)
	cmd := &cobra.Command{
		Use:     "create [NAME]",
		Short:   "Create an inbox, with the given or a random name",
		Example: "  postroom inbox create signup\n  postroom inbox create --lasts 1h --json",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&domain, "domain", "", "verified domain (default: the mail domain of the server)")
	cmd.Flags().StringVar(&displayName, "display-name", "", "display name of the sender")
	choose(cmd, &policy, "policy", "send policy", policy.AllValues())
	cmd.Flags().IntVar(&retention, "retention-days", 0, "retention of message content in days, 1 to 30 (default: 7)")
	cmd.Flags().StringSliceVar(&aliases, "alias", nil, "local part of a further address on the domain (repeatable)")
	cmd.Flags().BoolVar(&catchAll, "catch-all", false, "receive mail for all other addresses on the verified domain")
	cmd.Flags().Var(span{&lasts}, "lasts", "time until the inbox expires, such as 24h (default: never)")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		in := gen.InboxCreate{Domain: opt(domain)}
		if len(args) == 1 {
			in.Name.SetTo(args[0])
		}
		if displayName != "" {
			in.DisplayName.SetTo(displayName)
		}
		if policy != "" {
			in.SendPolicy.SetTo(policy)
		}
		if retention != 0 {
			in.RetentionDays.SetTo(retention)
		}
		for _, alias := range aliases {
			in.Aliases = append(in.Aliases, gen.LocalPart(alias))
		}
		if catchAll {
			in.CatchAll.SetTo(true)
		}
		if lasts != 0 {
			in.ExpiresAt.SetTo(time.Now().Add(lasts))
		}
		made, err := a.NewInbox(ctx, in)
		if err != nil {
			return err
		}
		return a.show(made, func(t *table) { t.row(made.ID, made.Address) })
	})
}

func (p Program) inboxListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List inboxes, newest first", Args: cobra.NoArgs}
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		all := a.Inboxes(ctx, gen.ListInboxesParams{Limit: pageOf(limit)})
		return showList(a.output, all, limit, []string{"ID", "ADDRESS", "STATUS", "POLICY", "LAST MESSAGE"}, func(in gen.Inbox) []string {
			return []string{in.ID, in.Address, in.Status, in.SendPolicy, whenNil(in.LastMessageAt)}
		})
	})
}

func (p Program) inboxGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get INBOX", Short: "Show an inbox, by ID or address", Args: Wants(1)}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.inboxID(ctx, args[0])
		if err != nil {
			return err
		}
		in, err := a.GetInbox(ctx, gen.GetInboxParams{InboxID: id})
		if err != nil {
			return err
		}
		return a.show(in, func(t *table) {
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
	var (
		displayName string
		policy      gen.SendPolicy
		retention   int
		aliases     []string
		catchAll    bool
		lasts       time.Duration
	)
	cmd := &cobra.Command{
		Use:     "update INBOX",
		Short:   "Change what the flags name of an inbox, by ID or address",
		Example: "  postroom inbox update signup@agents.example.com --alias sales,orders\n  postroom inbox update signup@agents.example.com --catch-all=false",
		Args:    Wants(1),
	}
	cmd.Flags().StringVar(&displayName, "display-name", "", `display name of the sender; "" for none`)
	choose(cmd, &policy, "policy", "send policy", policy.AllValues())
	cmd.Flags().IntVar(&retention, "retention-days", 0, "retention of message content in days, 1 to 30")
	cmd.Flags().StringSliceVar(&aliases, "alias", nil, `all local parts of further addresses on the domain; "" for none`)
	cmd.Flags().BoolVar(&catchAll, "catch-all", false, "receive mail for all other addresses on the verified domain")
	cmd.Flags().Var(span{&lasts}, "lasts", "time until the inbox expires, such as 24h; 0 for never")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		var in gen.InboxUpdate
		changed := 0
		for name, set := range map[string]func(){
			"display-name": func() {
				if in.DisplayName.SetTo(displayName); displayName == "" {
					in.DisplayName.SetToNull()
				}
			},
			"policy":         func() { in.SendPolicy.SetTo(policy) },
			"retention-days": func() { in.RetentionDays.SetTo(retention) },
			"alias": func() {
				in.Aliases = make([]gen.LocalPart, len(aliases))
				for i, alias := range aliases {
					in.Aliases[i] = gen.LocalPart(alias)
				}
			},
			"catch-all": func() { in.CatchAll.SetTo(catchAll) },
			"lasts": func() {
				if in.ExpiresAt.SetTo(time.Now().Add(lasts)); lasts == 0 {
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
		if err != nil {
			return err
		}
		return a.show(updated, func(t *table) { t.row(updated.ID, updated.Address) })
	})
}

func (p Program) inboxDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete INBOX",
		Short: "Delete an inbox and its messages permanently, by ID or address",
		Args:  Wants(1),
	}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		id, err := a.inboxID(ctx, args[0])
		if err != nil {
			return err
		}
		if err := p.confirm(cmd, "inbox "+args[0]+" and its messages"); err != nil {
			return err
		}
		in, err := a.DeleteInbox(ctx, gen.DeleteInboxParams{InboxID: id})
		if err != nil {
			return err
		}
		return a.show(in, func(t *table) {
			t.row(fmt.Sprintf("Deleted %s. Its address %s cannot be used again.", in.ID, in.Address))
		})
	})
}
