package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

// inboxCommand groups commands that call a server's API and operator commands
// that change the database directly.
func (p program) inboxCommand() *cobra.Command {
	cmd := grouped(&cobra.Command{Use: "inbox", Short: "Create, list and delete inboxes; suspend and resume them"})
	own := []*cobra.Command{
		p.turnInboxCommand("suspend", "Suspend an inbox: it cannot receive or send", "is already suspended", (*store.Store).SuspendInbox),
		p.turnInboxCommand("resume", "Let a suspended inbox take mail and send again", "is not suspended", (*store.Store).ResumeInbox),
	}
	return cli.Group(cmd, append(inGroup(apiGroup, p.InboxCommands()), onInstall(own)...)...)
}

func (p program) turnInboxCommand(name, short, done string, turn func(*store.Store, context.Context, string) (store.Inbox, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short + "; by ID or address, in any account",
		Args:  cli.Wants(1),
		RunE: p.onStore(func(ctx context.Context, _ Config, s *store.Store, args []string) error {
			in, err := turn(s, ctx, args[0])
			if errors.Is(err, store.ErrState) {
				return fmt.Errorf("%s %s", args[0], done)
			}
			if err != nil {
				return err
			}
			return p.printf("%s (%s) is %s.\n", in.ID, in.Address, in.Status)
		}),
	}
}
