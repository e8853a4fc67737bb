package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

// givenUp is the error of recipients and webhook deliveries that the operator
// discarded.
const givenUp = "held since a restore from a backup, and discarded by the operator"

func (p program) heldCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "held", Short: "Release or discard mail and webhooks that a restore holds"},
		p.heldShowCommand(), p.heldReleaseCommand(), p.heldDropCommand(), p.heldHoldCommand())
}

func (p program) heldShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Show how much is held"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error { return p.showHeld(ctx, s) })
}

func (p program) showHeld(ctx context.Context, s *store.Store) error {
	h, err := s.Held(ctx)
	if err != nil {
		return err
	}
	return p.printf("%s", heldText(h))
}

func (p program) heldReleaseCommand() *cobra.Command {
	var after string
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Send the held mail and webhooks",
		Long: "Send the held mail and webhooks. What the old installation sent after the backup is sent again. With\n" +
			"--due-after and the time when the old installation stopped, only mail and webhooks that were not due\n" +
			"by then are released, so that nothing is sent twice.",
		Example: "  postroom held release --due-after 2026-03-01T09:30:00Z\n  postroom held release",
	}
	cmd.Flags().StringVar(&after, "due-after", "", "release only what was not due before this time, such as 2026-03-01T09:30:00Z")
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error {
		var from time.Time
		if after != "" {
			var err error
			if from, err = time.Parse(time.RFC3339, after); err != nil {
				return cli.UsageError{Err: errors.New("--due-after: use a time such as 2026-03-01T09:30:00Z")}
			}
		}
		h, err := s.ReleaseHeld(ctx, from)
		if err != nil {
			return err
		}
		if err := p.printf("Released: %s.\n", heldCounts(h)); err != nil {
			return err
		}
		return p.showHeld(ctx, s)
	})
}

func (p program) heldDropCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "drop", Short: "Discard the held mail: messages fail, scheduled emails are cancelled"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error {
		h, err := s.DiscardHeld(ctx, givenUp)
		if err != nil {
			return err
		}
		return p.printf("Discarded: %s.\n", heldCounts(h))
	})
}

func (p program) heldHoldCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hold",
		Short: "Hold queued mail in a database that was restored by other means",
		Long: "Hold all queued mail, scheduled emails and webhooks, as `postroom restore` does. Use it before the\n" +
			"first start on a database that was restored by other means, such as a disk snapshot.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.config(cmd)
			if err != nil {
				return err
			}
			mine, err := cfg.claim() // a serving node has claimed work
			if err != nil {
				return err
			}
			err = p.withStore(cmd, func(ctx context.Context, _ Config, s *store.Store) error {
				if err := s.Hold(ctx); err != nil {
					return err
				}
				return p.showHeld(ctx, s)
			})
			return errors.Join(err, mine.release())
		},
	}
}

func heldCounts(h store.Held) string {
	return fmt.Sprintf("%d recipients of mail, %d scheduled emails, %d webhook deliveries", h.Recipients, h.Scheduled, h.Deliveries)
}

func heldText(h store.Held) string {
	if h.None() {
		return "Nothing is held.\n"
	}
	return "Held, because they may have gone out after the backup was made: " + heldCounts(h) + ".\n" +
		"`postroom held release` sends them, `postroom held drop` gives them up.\n"
}

// tellOfHeld logs a reminder of held deliveries.
func (n *node) tellOfHeld(ctx context.Context, s *store.Store) error {
	h, err := s.Held(ctx)
	if err == nil && !h.None() {
		n.log.WarnContext(ctx, "mail is held since a restore: use `postroom held` to release or discard it",
			"recipients", h.Recipients, "scheduled", h.Scheduled, "webhook_deliveries", h.Deliveries)
	}
	return err
}
