package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// As in the contract: how many aliases an inbox may have, and the default of
// retention_days.
const (
	maxAliases    = 20
	retentionDays = 7
)

// inboxCommand groups commands that call a server's API and operator commands
// that change the database directly.
func (p program) inboxCommand() *cobra.Command {
	cmd := grouped(&cobra.Command{Use: "inbox", Short: "Create, list and delete inboxes; suspend and resume them; assign reserved addresses"})
	own := []*cobra.Command{
		p.assignAddressCommand(),
		p.turnInboxCommand("suspend", "Suspend an inbox: it cannot receive or send", "is already suspended", (*store.Store).SuspendInbox),
		p.turnInboxCommand("resume", "Let a suspended inbox take mail and send again", "is not suspended", (*store.Store).ResumeInbox),
	}
	return cli.Group(cmd, append(inGroup(apiGroup, p.InboxCommands()), onInstall(own)...)...)
}

func (p program) assignAddressCommand() *cobra.Command {
	var aliasOf string
	cmd := &cobra.Command{
		Use:   "assign ADDRESS",
		Short: "Create an inbox at an address that may be reserved, or add the address to an inbox",
		Long: "Create an inbox at an address, or add the address to an inbox as an alias. Unlike the API, the\n" +
			"command accepts reserved names, such as support@ or postmaster@. Each key and person that reads\n" +
			"the account reads the mail, and certificate authorities send their checks to some of these names.",
		Example: "  postroom inbox assign support@agents.example.com --account acc_...\n" +
			"  postroom inbox assign dmarc@agents.example.com --alias-of reports@agents.example.com",
	}
	cmd.Flags().StringVar(&aliasOf, "alias-of", "", "address of the account's inbox that gets the address as an alias (default: create an inbox)")
	return p.onAccount(cmd, func(ctx context.Context, cfg Config, s *store.Store, a store.Account, args []string) error {
		in, err := cfg.assignAddress(ctx, s, a, strings.ToLower(args[0]), strings.ToLower(aliasOf))
		if err != nil {
			return err
		}
		return p.printf("%s (%s) has the address %s.\n", in.ID, in.Address, strings.ToLower(args[0]))
	})
}

// assignAddress gives an address to a new inbox of the account, or to the one at aliasOf.
func (c Config) assignAddress(ctx context.Context, s *store.Store, a store.Account, address, aliasOf string) (store.Inbox, error) {
	name, domain, _ := strings.Cut(address, "@")
	if gen.LocalPart(name).Validate() != nil || mail.ValidAddress(address) != nil {
		return store.Inbox{}, cli.UsageError{Err: fmt.Errorf("%q must be an address without a tag, such as support@%s", address, c.MailDomain)}
	}
	onOwnDomain := domain != string(c.MailDomain)
	if aliasOf == "" {
		return s.CreateInbox(ctx, store.Inbox{
			AccountID: a.Seq, Address: address, Name: name, Domain: domain, SendPolicy: store.SendPolicy(c.DefaultSendPolicy),
			RetentionDays: retentionDays, Metadata: store.JSON[store.Labels]{V: store.Labels{}}, OnOwnDomain: onOwnDomain,
		}, nil)
	}
	in, err := s.InboxAt(ctx, 0, aliasOf)
	if err != nil || in.AccountID != a.Seq || in.Address != aliasOf || in.Domain != domain {
		return store.Inbox{}, fmt.Errorf("--alias-of: no inbox of account %s on %s has the address %q", a.ID, domain, aliasOf)
	}
	return s.UpdateInbox(ctx, a.Seq, in.ID, func(in *store.Inbox) error {
		in.OnOwnDomain = onOwnDomain
		if len(in.Aliases.V) >= maxAliases {
			return fmt.Errorf("%s has %d aliases already", in.Address, maxAliases)
		}
		in.Aliases.V = append(in.Aliases.V, name)
		return nil
	})
}

func (p program) turnInboxCommand(name, short, done string, turn func(*store.Store, context.Context, string) (store.Inbox, error)) *cobra.Command {
	cmd := &cobra.Command{Use: name + " ID", Short: short + "; by ID or address, in any account"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, args []string) error {
		in, err := turn(s, ctx, args[0])
		if errors.Is(err, store.ErrState) {
			return fmt.Errorf("%s %s", args[0], done)
		}
		if err != nil {
			return err
		}
		return p.printf("%s (%s) is %s.\n", in.ID, in.Address, in.Status)
	})
}
