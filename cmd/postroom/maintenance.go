package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

func (p program) maintenanceCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "maintenance", Short: "Manage the deletion of expired content"}, p.maintenanceConfirmCommand())
}

func (p program) maintenanceConfirmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "confirm",
		Short: "Confirm that the clock is correct, so that deletion of expired content resumes",
		Long: "Confirm that the clock of this machine is correct. With SQLite, Postroom deletes nothing for a day\n" +
			"after the clock has jumped by more than an hour, or when the service starts more than a day after\n" +
			"the last deletion. This command ends the wait.",
	}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error {
		held, err := s.ConfirmClock(ctx)
		if err != nil {
			return err
		}
		if !held {
			return p.printf("Nothing was waiting for a confirmation.\n")
		}
		return p.printf("Confirmed: old mail is deleted again.\n")
	})
}
