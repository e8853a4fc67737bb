package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/store"
)

// newLogger returns the program's logger.
func newLogger(cfg Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.Level(cfg.LogLevel)}
	if cfg.Log == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// openToServe opens the store with everything that serving needs.
func (c Config) openToServe(ctx context.Context, keys subkeys, now func() time.Time, log *slog.Logger) (*store.Store, error) {
	blobs, err := c.openBlobs(ctx, now)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, store.Config{
		Database: string(c.Database), Blobs: blobs, CursorKey: keys.cursors, SealKey: keys.seal,
		Plans: c.Plans, DefaultPlan: c.Plan, AutoPause: bool(c.AutoPause), EmailRetention: c.EmailRetention.duration(), Now: now, Log: log,
		AgentLimits: c.AgentLimits.Limits, InboxQuota: store.Quota(c.InboxQuota),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database %s: %w", c.Database, err), blobs.Close())
	}
	return s, nil
}

// openForCommand opens the store for a short command, perhaps while `serve` runs.
// The command does not use blobs. Without needSecret it does not use encrypted data
// either, and works on a machine without the installation secret.
func (c Config) openForCommand(ctx context.Context, needSecret bool, log *slog.Logger) (*store.Store, error) {
	if !c.Database.postgres() {
		if _, err := os.Stat(string(c.Database)); errors.Is(err, fs.ErrNotExist) {
			return nil, c.errNoDatabase(ctx)
		}
	}
	keys, err := c.commandKeys(needSecret)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, store.Config{
		Database: string(c.Database), CursorKey: keys.cursors, SealKey: keys.seal,
		Plans: c.Plans, DefaultPlan: c.Plan, Now: time.Now, Log: log,
		StatementTimeout: 10 * time.Minute, // a backup sorts whole tables
	})
	if err != nil {
		return nil, fmt.Errorf("open the database %s: %w", c.Database, err)
	}
	if !needSecret {
		return s, nil
	}
	if err := c.prove(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// errNoDatabase says that there is no installation here, and whether another one runs.
func (c Config) errNoDatabase(ctx context.Context) error {
	if askHealth(ctx, string(c.HTTP)) == nil {
		return fmt.Errorf("no database at %s, but a server runs at %s: set %sDATA or %[3]sDATABASE to what it uses, and run this as its user",
			c.databasePlace(), c.HTTP, envPrefix)
	}
	return fmt.Errorf("no database at %s: start `postroom serve` once, or set %sDATA or %[2]sDATABASE", c.databasePlace(), envPrefix)
}

// databasePlace names the database, without its password.
func (c Config) databasePlace() string {
	if place, err := filepath.Abs(string(c.Database)); err == nil && !c.Database.postgres() {
		return place
	}
	return c.Database.String()
}

// prove returns an error if the database was created with another secret.
func (c Config) prove(ctx context.Context, s *store.Store) error {
	err := s.ProveSecret(ctx)
	if !errors.Is(err, store.ErrSecret) {
		return err
	}
	where := "the file " + filepath.Join(c.Data, secretFile)
	if c.Secret != "" {
		where = envPrefix + "SECRET"
	}
	return fmt.Errorf("the secret in %s does not match the database %s: restore the original secret", where, c.Database)
}

func (c Config) commandKeys(needSecret bool) (subkeys, error) {
	s, err := c.installSecret()
	if errors.Is(err, fs.ErrNotExist) && !needSecret {
		return derive(newSecret())
	}
	if err != nil {
		return subkeys{}, fmt.Errorf("%w: set %sSECRET or %[2]sDATA of the installation", err, envPrefix)
	}
	return derive(s)
}

// migrate migrates the schema and returns the number of steps. It does not need
// the secret.
func (c Config) migrate(ctx context.Context, log *slog.Logger) (int, error) {
	keys, err := derive(newSecret())
	if err != nil {
		return 0, err
	}
	steps, err := store.Migrate(ctx, store.Config{
		Database: string(c.Database), CursorKey: keys.cursors, SealKey: keys.seal, Now: time.Now, Log: log,
	})
	if err != nil {
		return steps, fmt.Errorf("migrate database %s: %w", c.Database, err)
	}
	return steps, nil
}

// useBucket reads the credentials of the bucket, if one is configured, from the
// standard AWS variables.
func (c *Config) useBucket(faults *faultList, given, vars map[string]string) {
	if !c.Blobs.bucket() {
		return
	}
	bucket, err := s3blob.Parse(string(c.Blobs))
	if err != nil {
		return // already reported
	}
	if bucket.Credentials, err = s3blob.Environment(vars); err != nil {
		faults.add("%s names a bucket: %v", given["Blobs"], err)
	}
	c.bucket = &bucket
}

func (c Config) openBlobs(ctx context.Context, now func() time.Time) (blobs store.Blobs, err error) {
	if c.bucket == nil {
		blobs, err = store.OpenBlobFolder(string(c.Blobs), now)
	} else {
		bucket := *c.bucket
		bucket.Now = now
		blobs, err = s3blob.Open(ctx, bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("open %sBLOBS: %w", envPrefix, err)
	}
	return blobs, nil
}
