package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

// ownPlan is the name of the default plan on the command line.
const ownPlan = "default"

func (p program) accountCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "account", Short: "Create, list, suspend and resume accounts, and set their plans"}
	return cli.Group(cmd, p.accountCreateCommand(), p.accountListCommand(), p.accountSuspendCommand(), p.accountResumeCommand(), p.accountPlanCommand())
}

// withStore runs do on the store, for a short command that needs no encrypted
// data.
func (p program) withStore(cmd *cobra.Command, do func(context.Context, Config, *store.Store) error) (err error) {
	return p.withOpenStore(cmd, false, do)
}

// onStore turns cmd into a command that works on the store.
func (p program) onStore(cmd *cobra.Command, do func(context.Context, Config, *store.Store, []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withStore(cmd, func(ctx context.Context, cfg Config, s *store.Store) error { return do(ctx, cfg, s, args) })
	}
	return cmd
}

func (p program) withOpenStore(cmd *cobra.Command, needSecret bool, do func(context.Context, Config, *store.Store) error) (err error) {
	cfg, err := p.config(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	s, err := cfg.openForCommand(ctx, needSecret, newLogger(cfg, p.Stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(ctx, cfg, s)
}

func (p program) accountCreateCommand() *cobra.Command {
	var name, plan string
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create an account and print its ID",
		Example: "  postroom account create --name growth --plan free\n  postroom key create --account acc_... --name first",
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the account, 1 to 100 characters (required)")
	cmd.Flags().StringVar(&plan, "of-plan", ownPlan, "plan: self_hosted, free, one of --plans, or "+ownPlan+" for that of --plan")
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error {
		if !validName(name) {
			return cli.UsageError{Err: errors.New("--name must be 1 to 100 characters on one line")}
		}
		of, err := planOf(s, plan)
		if err != nil {
			return err
		}
		a, err := s.CreateAccount(ctx, name)
		if err == nil && of != nil {
			err = s.SetPlan(ctx, a.ID, of)
		}
		if err != nil {
			return err
		}
		return p.printf("%s\n", a.ID)
	})
}

func validName(name string) bool {
	n := utf8.RuneCountInString(name)
	return n >= 1 && n <= 100 && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

// planOf returns the name of a plan, or nil for the default plan.
func planOf(s *store.Store, name string) (*string, error) {
	switch {
	case name == ownPlan:
		return nil, nil //nolint:nilnil // nil is the installation's own
	case !s.HasPlan(name):
		return nil, cli.UsageError{Err: fmt.Errorf("plan %q not found: use self_hosted, free or a plan of %sPLANS", name, envPrefix)}
	}
	return &name, nil
}

func (p program) accountListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all accounts and their usage, newest first"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, _ []string) error {
		header := []string{"ID", "NAME", "PLAN", "INBOXES", "TODAY", "MONTH", "CREATED", "SENDING"}
		list := func(page store.Page) (store.List[store.Account], error) { return s.ListAccounts(ctx, page) }
		return printList(p.Stdout, header, list, func(a store.Account) ([]string, error) {
			u, err := s.Usage(ctx, a.Seq)
			sending := "on"
			if a.PausedAt != nil {
				sending = "paused: " + *a.PauseReason
			}
			return []string{
				a.ID, a.Name, u.Plan.Name, ofLimit(u.Account.Inboxes, u.Plan.Inboxes), ofLimit(u.Today, u.Plan.Daily),
				ofLimit(u.Month, u.Plan.Monthly), day(&a.CreatedAt), sending,
			}, err
		})
	})
}

// ofLimit formats usage against a limit; limit 0 means unlimited.
func ofLimit(n, limit int64) string {
	if limit == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%d", n, limit)
}

func (p program) accountSuspendCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "suspend ID", Short: "Stop an account from sending; it continues to receive mail"}
	cmd.Flags().StringVar(&reason, "reason", "suspended by the operator", "reason that its users see")
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, args []string) error {
		if err := s.PauseAccount(ctx, args[0], reason); err != nil {
			return err
		}
		return p.printf("Suspended %s.\n", args[0])
	})
}

func (p program) accountResumeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "resume ID", Short: "Resume sending of an account, and reset its bounce count"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, args []string) error {
		if _, err := s.Account(ctx, args[0]); err != nil {
			return err
		}
		if err := s.ResumeAccount(ctx, args[0]); errors.Is(err, store.ErrState) {
			return fmt.Errorf("%s is not suspended", args[0])
		} else if err != nil {
			return err
		}
		return p.printf("Resumed %s.\n", args[0])
	})
}

func (p program) accountPlanCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plan ID PLAN", Short: "Set the plan of an account; the default plan is " + ownPlan}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, args []string) error {
		plan, err := planOf(s, args[1])
		if err == nil {
			err = s.SetPlan(ctx, args[0], plan)
		}
		if err != nil {
			return err
		}
		return p.printf("%s now has the plan %s.\n", args[0], args[1])
	})
}
