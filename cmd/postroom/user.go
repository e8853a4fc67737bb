package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

func (p program) userCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "user", Short: "Create, list, reset and remove dashboard users"},
		p.userCreateCommand(), p.userListCommand(), p.userResetCommand(), p.userRemoveCommand())
}

func (p program) userCreateCommand() *cobra.Command {
	var name, role string
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create a user and print a one-time link to set the password",
		Example: "  postroom user create --name ann@example.com",
	}
	cmd.Flags().StringVar(&name, "name", "", "sign-in name, such as an email address, 1 to 100 characters (required)")
	cmd.Flags().StringVar(&role, "role", string(store.RoleAdmin), "what the user may do: admin (everything), approver (read, and decide about drafts) or viewer (read)")
	return p.onAccount(cmd, func(ctx context.Context, cfg Config, s *store.Store, a store.Account, _ []string) error {
		if !validName(name) {
			return cli.UsageError{Err: errors.New("--name must be 1 to 100 characters on one line")}
		}
		if !slices.Contains(store.Roles, store.Role(role)) {
			return cli.UsageError{Err: errors.New("--role must be admin, approver or viewer")}
		}
		link, token := web.NewLink(time.Now())
		u, err := s.CreateUser(ctx, a.Seq, name, store.Role(role), link)
		if errors.Is(err, store.ErrNameTaken) {
			return fmt.Errorf("user %s already exists; `postroom user reset %[1]s` creates a new link", name)
		}
		if err != nil {
			return err
		}
		return p.showLink(cfg, fmt.Sprintf("Created %s, who signs in as %s.", u.ID, u.Name), token)
	})
}

// showLink prints only the link to stdout, for scripts.
func (p program) showLink(cfg Config, what, token string) error {
	addr, err := net.ResolveTCPAddr("tcp", string(cfg.HTTP))
	if err != nil {
		return err
	}
	if addr.IP == nil {
		addr.IP = net.IPv6unspecified // as a listener reports it
	}
	https, err := cfg.httpsAddr()
	if err != nil {
		return err
	}
	base, _ := cfg.baseURL(addr, https)
	if _, err := fmt.Fprintln(p.Stderr, what, "The link sets the password. It works once, for 24 hours."); err != nil {
		return err
	}
	return p.printf("%s\n", web.SetupURL(base, token))
}

func (p program) userListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the users of an account, newest first"}
	return p.onAccount(cmd, func(ctx context.Context, _ Config, s *store.Store, a store.Account, _ []string) error {
		list := func(page store.Page) (store.List[store.User], error) { return s.ListUsers(ctx, a.Seq, page) }
		return printList(p.Stdout, []string{"ID", "NAME", "ROLE", "PASSWORD", "CREATED"}, list, func(u store.User) ([]string, error) {
			password := "set"
			if u.Password == nil {
				password = "not set yet"
			}
			return []string{u.ID, u.Name, string(u.Role), password, day(&u.CreatedAt)}, nil
		})
	})
}

func (p program) userResetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Remove the password of a user, sign them out, and print a link to set a new one",
	}
	return p.onStore(cmd, func(ctx context.Context, cfg Config, s *store.Store, args []string) error {
		link, token := web.NewLink(time.Now())
		u, err := s.ResetUser(ctx, args[0], link)
		if err != nil {
			return unknownUser(err, args[0])
		}
		return p.showLink(cfg, fmt.Sprintf("Reset %s; the old password is gone.", u.Name), token)
	})
}

func (p program) userRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a user and sign them out"}
	return p.onStore(cmd, func(ctx context.Context, _ Config, s *store.Store, args []string) error {
		u, err := s.RemoveUser(ctx, args[0])
		if err != nil {
			return unknownUser(err, args[0])
		}
		return p.printf("Removed %s.\n", u.Name)
	})
}

func unknownUser(err error, name string) error {
	if errors.Is(err, store.ErrNotFound) {
		return &cli.Explained{Text: "user " + name + " not found", Cause: err}
	}
	return err
}
