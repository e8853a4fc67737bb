package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/backup"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

func (p program) backupCommand() *cobra.Command {
	var noSecret bool
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Back up the database, large messages and the installation secret into a new folder",
		Long: "Copy a consistent snapshot of the database, the large messages and the installation secret into a\n" +
			"new folder, while the service runs, and verify the copy. The folder contains all mail and, with the\n" +
			"secret, all private keys. Keep it safe.\n\n" +
			"PostgreSQL is copied by its own pg_dump, which has to be on this machine. A secret that is given by\n" +
			envPrefix + "SECRET, and not by the file in the data folder, is left out: keep it elsewhere.",
		Args: cli.Wants(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withOpenStore(cmd, true, func(ctx context.Context, cfg Config, s *store.Store) error {
				return p.backUp(ctx, cfg, s, args[0], noSecret)
			})
		},
	}
	cmd.Flags().BoolVar(&noSecret, "without-secret", false, "omit the installation secret; a restore then needs it in "+envPrefix+"SECRET")
	return cmd
}

func (p program) backUp(ctx context.Context, cfg Config, s *store.Store, dir string, noSecret bool) (err error) {
	given, mark, err := cfg.secretAndMark()
	if err != nil {
		return err
	}
	if noSecret || cfg.Secret != "" {
		given = ""
	}
	blobs, err := cfg.openBlobs(ctx, time.Now)
	if err != nil {
		return fmt.Errorf("open %sBLOBS: %w", envPrefix, err)
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	m, err := backup.Write(ctx, backup.Config{
		Store: s, Blobs: blobs, Dir: dir, Secret: string(given), Fingerprint: mark, Version: programVersion(), Now: time.Now,
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s is a backup of the installation at %s: %d inboxes, %d messages, %d events, %d blobs.\n",
		dir, m.End.Format(time.RFC3339), m.Inboxes, m.Messages, m.Events, m.Blobs-m.MissingBlobs)
	if err == nil && !m.HasSecret {
		_, err = fmt.Fprintln(p.Stdout, "It does not contain the installation secret, which a restore needs: keep the secret elsewhere.")
	}
	if m.MissingBlobs > 0 {
		err = errors.Join(err, fmt.Errorf("the backup is complete, but %d blobs of messages are missing in the storage", m.MissingBlobs))
	}
	return err
}

// secretAndMark returns the installation secret and a short fingerprint of it.
func (c Config) secretAndMark() (secret, string, error) {
	s, err := c.installSecret()
	if err != nil {
		return "", "", err
	}
	keys, err := derive(s)
	return s, hex.EncodeToString(keys.mark[:8]), err
}

func (p program) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FOLDER",
		Short: "Restore a backup into an empty data folder and database, and hold its queued mail",
		Long: "Verify a backup and restore it into the data folder, the database and the storage of large messages\n" +
			"that the settings name. All three must be empty.\n\n" +
			"Mail and webhooks that were queued at the time of the backup may have been sent since. They are held\n" +
			"until `postroom held release` or `postroom held drop`. New mail is not held.",
		Args: cli.Wants(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := p.config(cmd)
			if err != nil {
				return err
			}
			return p.restore(cmd.Context(), cfg, args[0])
		},
	}
}

func (p program) restore(ctx context.Context, cfg Config, dir string) (err error) {
	b, err := backup.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if postgres := b.Engine == "postgresql"; postgres != cfg.Database.postgres() {
		return fmt.Errorf("the backup is of a %s database, but %sDATABASE is %s", b.Engine, envPrefix, cfg.Database)
	}
	mine, err := cfg.claimEmpty()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mine.release()) }()
	if err := b.Check(ctx); err != nil {
		return err
	}
	if err := cfg.restoreAll(ctx, b, dir, newLogger(cfg, p.Stderr)); err != nil {
		return fmt.Errorf("%w\nThe restore failed: empty the data folder %s, the database and the storage of large messages before you retry", err, cfg.Data)
	}
	s, err := cfg.openForCommand(ctx, true, newLogger(cfg, p.Stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	held, err := s.Held(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Restored the installation as of %s: %d inboxes, %d messages, %d events, %d blobs.\n%s",
		b.End.Format(time.RFC3339), b.Inboxes, b.Messages, b.Events, b.Blobs-b.MissingBlobs, heldText(held))
	return err
}

// claimEmpty locks an empty data folder.
func (c Config) claimEmpty() (cl *claim, err error) {
	entries, err := os.ReadDir(c.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); name != lockFile && name != tempFolder && name != "lost+found" {
			return nil, fmt.Errorf("the data folder %s is not empty: it contains %s", c.Data, name)
		}
	}
	cl = &claim{}
	if err := cl.lock(filepath.Join(c.Data, lockFile), true); err != nil {
		return nil, fmt.Errorf("%s is in use: %w", c.Data, err)
	}
	return cl, nil
}

// restoreAll restores the secret, if the backup contains it, and then everything
// else.
func (c Config) restoreAll(ctx context.Context, b *backup.Backup, dir string, log *slog.Logger) (err error) {
	given, err := b.Secret()
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Secret == "":
		return fmt.Errorf("the backup does not contain the installation secret: set %sSECRET", envPrefix)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && c.Secret == "":
		if err := secret(given).keep(c.Data); err != nil {
			return err
		}
	}
	in, mark, err := c.secretAndMark()
	if err != nil {
		return err
	}
	if mark != b.Fingerprint {
		return fmt.Errorf("the secret in %sSECRET does not match the backup", envPrefix)
	}
	keys, err := derive(in)
	if err != nil {
		return err
	}
	blobs, err := c.openBlobs(ctx, time.Now)
	if err != nil {
		return fmt.Errorf("open %sBLOBS: %w", envPrefix, err)
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	return b.Restore(ctx, dir, store.Config{
		Database: string(c.Database), CursorKey: keys.cursors, SealKey: keys.seal, Now: time.Now, Log: log,
	}, blobs)
}
