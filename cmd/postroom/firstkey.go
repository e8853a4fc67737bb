package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// install is the state that the first start creates and later starts find.
type install struct {
	secret   secret
	keys     subkeys
	isNew    bool   // the secret is new and not stored yet
	isFirst  bool   // the account is new
	firstKey string // the account's key, if it is new
	setup    string // token of the user's one-time link; empty without a new user
}

// findSecret returns the installation secret, or a new one that is not stored
// yet.
func (c Config) findSecret() (in install, err error) {
	in.secret, err = c.installSecret()
	if errors.Is(err, fs.ErrNotExist) {
		in.secret, in.isNew, err = newSecret(), true, nil
	}
	if err != nil {
		return in, err
	}
	in.keys, err = derive(in.secret)
	return in, err
}

// firstUserName is the dashboard user of a new installation.
const firstUserName = "admin"

// begin creates the first account with its key and user, if there is none, and
// stores a new secret. It refuses a new secret for an existing database: the
// secret could not decrypt its data, and issued links and cursors would become
// invalid.
func (c Config) begin(ctx context.Context, s *store.Store, in *install, log *slog.Logger) error {
	_, err := s.FirstAccount(ctx)
	switch {
	case err == nil && in.isNew:
		return fmt.Errorf("the database %s belongs to an installation whose secret is not in %s: "+
			"copy its file %q there, or set %sSECRET", c.Database, c.Data, secretFile, envPrefix)
	case err == nil:
		return c.warnOfUnknownKey(ctx, s, log)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if in.isNew {
		if err := in.secret.keep(c.Data); err != nil {
			return err
		}
	}
	return c.makeFirstKey(ctx, s, in, log)
}

func (c Config) makeFirstKey(ctx context.Context, s *store.Store, in *install, log *slog.Logger) error {
	secret := string(c.BootstrapKey)
	if secret == "" {
		secret = apikey.New(string(store.KeyLive), string(c.KeyPrefix))
	}
	var user *store.FirstUser
	var setup string
	if c.Dashboard {
		user = &store.FirstUser{Name: firstUserName}
		user.Link, setup = web.NewLink(time.Now())
	}
	_, _, err := s.Bootstrap(ctx, "default", store.Key{
		Name: "first key", Hash: store.HashKey(secret), Prefix: apikey.Prefix(secret), Hint: apikey.Hint(secret), Mode: store.KeyLive,
		Scopes: store.JSON[[]string]{V: []string{"*"}}, AllowedIPs: store.JSON[[]string]{V: []string{}},
	}, user)
	switch {
	case errors.Is(err, store.ErrState) && in.isNew:
		// Another node was first, with its own secret.
		return errors.Join(fmt.Errorf("another node created the first account of the database %s just now: "+
			"give this node the same installation secret, with %sSECRET", c.Database, envPrefix), in.secret.forget(c.Data))
	case errors.Is(err, store.ErrState):
		return c.warnOfUnknownKey(ctx, s, log)
	case err != nil:
		return err
	}
	in.isFirst, in.setup = true, setup
	if c.BootstrapKey == "" {
		in.firstKey = secret
	}
	return nil
}

// warnOfUnknownKey warns that the configured bootstrap key does not exist. The
// key is created only at the first start, so that an old environment cannot
// restore a revoked key.
func (c Config) warnOfUnknownKey(ctx context.Context, s *store.Store, log *slog.Logger) error {
	if c.BootstrapKey == "" {
		return nil
	}
	_, err := s.KeyByHash(ctx, store.HashKey(string(c.BootstrapKey)))
	if errors.Is(err, store.ErrNotFound) {
		log.WarnContext(ctx, "the bootstrap key is ignored: an earlier start created the first key",
			"setting", envPrefix+"BOOTSTRAP_KEY", "key_hint", apikey.Hint(string(c.BootstrapKey)))
		return nil
	}
	return err
}
