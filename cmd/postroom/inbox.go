package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/store"
)

func (p program) inboxCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "inbox", Short: "Suspend and resume inboxes of any account"}
	return group(cmd,
		p.turnInboxCommand("suspend", "Make an inbox refuse mail and sending", "is suspended already", (*store.Store).SuspendInbox),
		p.turnInboxCommand("resume", "Let a suspended inbox take mail and send again", "is not suspended", (*store.Store).ResumeInbox))
}

func (p program) turnInboxCommand(name, short, done string, turn func(*store.Store, context.Context, string) (store.Inbox, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short + "; it is named by id or address",
		Args:  wants(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withStore(cmd, func(ctx context.Context, _ Config, s *store.Store) error {
				in, err := turn(s, ctx, args[0])
				if errors.Is(err, store.ErrState) {
					return fmt.Errorf("%s %s", args[0], done)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.stdout, "%s (%s) is %s.\n", in.ID, in.Address, in.Status)
				return err
			})
		},
	}
}
