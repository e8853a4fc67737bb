package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

func (p program) keyCommand() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "key", Short: "Create, list and revoke API keys"},
		p.keyCreateCommand(), p.keyListCommand(), p.keyRevokeCommand())
}

// accountFlag selects the account of a command.
const accountFlag = "account"

// onAccount turns cmd into a command that works on an account in the store: the one that a
// flag names, or the first.
func (p program) onAccount(cmd *cobra.Command, do func(context.Context, Config, *store.Store, store.Account, []string) error) *cobra.Command {
	inAccount(cmd)
	return p.onStore(cmd, func(ctx context.Context, cfg Config, s *store.Store, args []string) error {
		a, err := accountOf(ctx, cmd, s)
		if err != nil {
			return err
		}
		return do(ctx, cfg, s, a, args)
	})
}

func inAccount(cmd *cobra.Command) {
	cmd.Flags().String(accountFlag, "", "ID of the account (default: the first)")
}

// accountOf returns the account that the flag names, or the first one.
func accountOf(ctx context.Context, cmd *cobra.Command, s *store.Store) (store.Account, error) {
	id, err := cmd.Flags().GetString(accountFlag)
	if err != nil {
		return store.Account{}, err
	}
	if id != "" {
		return s.Account(ctx, id)
	}
	a, err := s.FirstAccount(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return a, errors.New("no account exists yet: start `postroom serve` once")
	}
	return a, err
}

// keyFlags are the flags of `key create`.
type keyFlags struct {
	name, mode, expires       string
	scopes, allowedIPs, boxes []string
}

func (p program) keyCreateCommand() *cobra.Command {
	var f keyFlags
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a key and print its secret, which is shown only once",
		Example: "  postroom key create --name ci\n" +
			"  postroom key create --name reader --mode restricted --scopes read",
	}
	cmd.Flags().StringVar(&f.name, "name", "", "name of the key, 1 to 100 characters (required)")
	cmd.Flags().StringVar(&f.mode, "mode", "live", "live, test or restricted")
	cmd.Flags().StringSliceVar(&f.scopes, "scopes", nil, "scopes, separated by commas (default * unless restricted)")
	cmd.Flags().StringSliceVar(&f.allowedIPs, "allowed-ips", nil, "allowed IPs, as CIDR blocks")
	cmd.Flags().StringSliceVar(&f.boxes, "inbox-ids", nil, "IDs of the inboxes that the key can access (default: all)")
	cmd.Flags().StringVar(&f.expires, "expires-at", "", "expiry, such as 2030-01-31T00:00:00Z")
	return p.onAccount(cmd, func(ctx context.Context, cfg Config, s *store.Store, a store.Account, _ []string) error {
		return p.createKey(ctx, cfg, s, a, f)
	})
}

// createKey prints only the secret to stdout, for scripts.
func (p program) createKey(ctx context.Context, cfg Config, s *store.Store, a store.Account, f keyFlags) error {
	k, err := f.key(time.Now())
	if err != nil {
		return cli.UsageError{Err: err}
	}
	for _, id := range f.boxes {
		if _, err := s.Inbox(ctx, a.Seq, id); err != nil {
			return fmt.Errorf("--inbox-ids: %s: %w", id, err)
		}
	}
	secret := apikey.New(f.mode, string(cfg.KeyPrefix))
	k.AccountID, k.Hash, k.Prefix, k.Hint = a.Seq, store.HashKey(secret), apikey.Prefix(secret), apikey.Hint(secret)
	if k, err = s.CreateKey(ctx, k); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.Stderr, "Created %s. Its secret is not shown again.\n", k.ID); err != nil {
		return err
	}
	return p.printf("%s\n", secret)
}

// key checks the flags by the rules of the API.
func (f keyFlags) key(now time.Time) (store.Key, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !validName(f.name) {
		bad("--name must be 1 to 100 characters on one line")
	}
	if gen.ApiKeyCreateMode(f.mode).Validate() != nil {
		bad("--mode must be live, test or restricted")
	}
	k := store.Key{Name: f.name, Mode: store.KeyMode(f.mode), AllowedIPs: store.JSON[[]string]{V: []string{}}}
	for _, sc := range f.scopes {
		if gen.ApiKeyScope(sc).Validate() != nil {
			bad("--scopes: %q is not one of %s", sc, scopeList())
		}
	}
	switch {
	case len(f.scopes) > 0:
		k.Scopes.V = slices.Compact(slices.Sorted(slices.Values(f.scopes)))
	case k.Mode == store.KeyRestricted:
		bad("--scopes is required for a restricted key")
	default:
		k.Scopes.V = []string{"*"}
	}
	for _, c := range f.allowedIPs {
		block, ok := apikey.ParseBlock(c)
		if !ok {
			bad("--allowed-ips: %q must be a CIDR block such as 192.0.2.0/24", c)
		}
		k.AllowedIPs.V = append(k.AllowedIPs.V, block.String())
	}
	if len(f.boxes) > 0 {
		k.InboxIDs = &store.JSON[[]string]{V: f.boxes}
	}
	if f.expires != "" {
		t, err := time.Parse(time.RFC3339, f.expires)
		if err != nil || !t.After(now) {
			bad("--expires-at must be a time to come, such as 2030-01-31T00:00:00Z")
		}
		k.ExpiresAt = store.TimePtr(&t)
	}
	return k, errors.Join(errs...)
}

func scopeList() string {
	var all []string
	for _, sc := range gen.ApiKeyScope("").AllValues() {
		all = append(all, string(sc))
	}
	return strings.Join(all, " ")
}

func (p program) keyListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the keys that are not revoked, newest first"}
	return p.onAccount(cmd, func(ctx context.Context, _ Config, s *store.Store, a store.Account, _ []string) error {
		header := []string{"ID", "NAME", "MODE", "SCOPES", "KEY", "CREATED", "LAST USED", "EXPIRES"}
		list := func(page store.Page) (store.List[store.Key], error) { return s.ListKeys(ctx, a.Seq, nil, page) }
		return printList(p.Stdout, header, list, func(k store.Key) ([]string, error) {
			return []string{
				k.ID, k.Name, string(k.Mode), strings.Join(k.Scopes.V, ","), k.Prefix + k.Hint, day(&k.CreatedAt), day(k.LastUsedAt), day(k.ExpiresAt),
			}, nil
		})
	})
}

func day(t *store.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.DateOnly)
}

func (p program) keyRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key",
		Long:  "Revoke a key. Unless it has the scope admin, the keys that it created are revoked too.",
	}
	return p.onAccount(cmd, func(ctx context.Context, _ Config, s *store.Store, a store.Account, args []string) error {
		err := s.RevokeKey(ctx, a.Seq, args[0])
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w in account %s; use --account for another account", err, a.ID)
		}
		if err != nil {
			return err
		}
		return p.printf("Revoked %s.\n", args[0])
	})
}
