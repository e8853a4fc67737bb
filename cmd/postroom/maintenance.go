package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/store"
)

func (p program) maintenanceCommand() *cobra.Command {
	return group(&cobra.Command{Use: "maintenance", Short: "Decide about the deletion of old mail"}, p.maintenanceConfirmCommand())
}

func (p program) maintenanceConfirmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Confirm that the clock of this machine is right, so that old mail is deleted again",
		Long: "Confirm that the clock of this machine is right. With SQLite, nothing is deleted for a day after the\n" +
			"clock has jumped by more than an hour, or when the service starts more than a day after it last\n" +
			"deleted anything. This command ends the wait.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd, func(ctx context.Context, _ Config, s *store.Store) error {
				held, err := s.ConfirmClock(ctx)
				if err != nil {
					return err
				}
				text := "Confirmed: old mail is deleted again.\n"
				if !held {
					text = "Nothing was waiting for a confirmation.\n"
				}
				_, err = fmt.Fprint(p.stdout, text)
				return err
			})
		},
	}
}
