package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/internal/backup"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

func (p program) backupCommand() *cobra.Command {
	var account string
	var noSecret bool
	cmd := &cobra.Command{
		Use:     "backup FOLDER",
		Aliases: []string{"export"},
		Short:   "Back up all data, or one account, into a folder that any database can restore",
		Long: "Write all data as of one moment into a new folder, while the service runs, and verify the copy.\n" +
			"Each message is an .eml file, and each table a file of JSON lines. `postroom restore` reads the folder\n" +
			"into SQLite or PostgreSQL, whichever it came from. The folder contains all mail and, with the secret,\n" +
			"all private keys. Keep it safe.\n\n" +
			"A secret that is given by " + envPrefix + "SECRET, and not by the file in the data folder, is left out: keep it\n" +
			"elsewhere. Messages whose content is missing or has the wrong size are listed, and everything else is\n" +
			"backed up.",
		Example: "  postroom backup /backup/2026-03-01\n  postroom backup --account acc_dastdg2ksf1kw07s /backup/growth",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withOpenStore(cmd, true, func(ctx context.Context, cfg Config, s *store.Store) error {
				return p.backUp(ctx, cfg, s, args[0], account, noSecret)
			})
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "ID of the only account to back up")
	cmd.Flags().BoolVar(&noSecret, "without-secret", false, "omit the installation secret; a restore then needs it in "+envPrefix+"SECRET")
	return cmd
}

func (p program) backUp(ctx context.Context, cfg Config, s *store.Store, dir, account string, noSecret bool) error {
	given, mark, err := cfg.secretAndMark()
	if err != nil {
		return err
	}
	if noSecret || cfg.Secret != "" {
		given = ""
	}
	var m backup.Manifest
	err = cfg.withBlobs(ctx, func(blobs store.Blobs) (err error) {
		m, err = backup.Write(ctx, backup.Config{
			Store: s, Blobs: blobs, Dir: dir, Secret: string(given), Fingerprint: mark, Version: programVersion(), Now: time.Now,
		}, account)
		return err
	})
	if err != nil {
		return err
	}
	err = p.printf("%s is a backup as of %s: %s.\n", dir, m.At.UTC().Format(time.RFC3339), contentOf(m))
	if err == nil && !m.HasSecret {
		err = p.printf("It does not contain the installation secret, which a restore needs: keep the secret elsewhere.\n")
	}
	if n := len(m.Missing); n > 0 {
		err = errors.Join(err, fmt.Errorf("the backup is complete, but the content of %d messages is missing or has the wrong size: %s",
			n, strings.Join(m.Missing[:min(n, 10)], ", ")))
	}
	return err
}

// contentOf says how much a backup contains.
func contentOf(m backup.Manifest) string {
	var counts []string
	for _, what := range [][2]string{{"accounts", "account"}, {"inboxes", "inbox"}, {"messages", "message"}, {"events", "event"}} {
		counts = append(counts, cli.Counted(m.Rows[what[0]], what[1]))
	}
	return strings.Join(counts, ", ")
}

// withBlobs calls do with the blob storage.
func (c Config) withBlobs(ctx context.Context, do func(store.Blobs) error) (err error) {
	blobs, err := c.openBlobs(ctx, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	return do(blobs)
}

func (p program) verifyCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "verify [FOLDER]",
		Short: "Read everything that is stored, and name what is damaged or missing",
		Long: "Read all pages, rows, messages and blobs of the installation, while the service runs, and compare them\n" +
			"with their checksums. Each damage is a line. With FOLDER, verify a backup instead.\n\n" +
			"With --account-for-all, count all mail by its state too, and name what is overdue or what nothing will\n" +
			"move on.\n\n" +
			"PostgreSQL verifies its own pages if the cluster was created with `initdb --data-checksums`.",
		Example: "  postroom verify\n  postroom verify --account-for-all\n  postroom verify /backup/2026-03-01",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && all:
				return cli.UsageError{Err: fmt.Errorf("--account-for-all is for an installation, not for the folder %q", args[0])}
			case len(args) == 1:
				return p.verifyFolder(cmd.Context(), args[0])
			}
			return p.withOpenStore(cmd, true, func(ctx context.Context, cfg Config, s *store.Store) error {
				err := p.verify(ctx, cfg, s)
				if all {
					err = errors.Join(err, p.accountForAll(ctx, s))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&all, "account-for-all", false, "count all mail by its state, and name what is overdue or what nothing will move on")
	return cmd
}

// accountForAll prints how much mail is in which state, and what is in none from which
// it moves on.
func (p program) accountForAll(ctx context.Context, s *store.Store) error {
	a, err := s.AccountForAll(ctx)
	if err != nil {
		return err
	}
	for _, line := range a.Unaccounted {
		_, _ = fmt.Fprintln(p.Stdout, line)
	}
	for _, part := range []struct {
		name   string
		counts map[string]int64
	}{{"Messages", a.Messages}, {"Recipients", a.Recipients}, {"Queued recipients wait for", a.Queued}, {"Webhook deliveries", a.Deliveries}} {
		counts := []string{}
		for _, name := range slices.Sorted(maps.Keys(part.counts)) {
			counts = append(counts, fmt.Sprintf("%s %d", name, part.counts[name]))
		}
		_, _ = fmt.Fprintf(p.Stdout, "%s: %s.\n", part.name, cmp.Or(strings.Join(counts, ", "), "none"))
	}
	if n := len(a.Unaccounted); n > 0 {
		return fmt.Errorf("%d messages are not accounted for", n)
	}
	return p.printf("All mail is accounted for.\n")
}

func (p program) verify(ctx context.Context, cfg Config, s *store.Store) error {
	var v backup.Verified
	err := cfg.withBlobs(ctx, func(blobs store.Blobs) (err error) {
		v, err = backup.Verify(ctx, s, blobs, func(line string) { _, _ = fmt.Fprintln(p.Stdout, line) })
		return err
	})
	if err != nil {
		return err
	}
	rows := int64(0)
	for _, n := range v.Rows {
		rows += n
	}
	_, err = fmt.Fprintf(p.Stdout, "Read %d rows and the content of %d messages", rows, v.Messages)
	if v.Unsummed > 0 {
		_, _ = fmt.Fprintf(p.Stdout, " (%d of an older version, without a checksum)", v.Unsummed)
	}
	_, _ = fmt.Fprintf(p.Stdout, ": %d findings.\n", v.Damage)
	if v.Damage > 0 {
		err = errors.Join(err, errors.New("the installation is damaged: restore a backup, or back up what is whole"))
	}
	return err
}

func (p program) verifyFolder(ctx context.Context, dir string) error {
	b, err := backup.Open(ctx, dir)
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		return err
	}
	return p.printf("%s is a whole backup.\n", dir)
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
	cmd := &cobra.Command{
		Use:     "restore FOLDER",
		Aliases: []string{"import"},
		Short:   "Restore a backup into an empty data folder and database, and hold its queued mail",
		Long: "Verify a backup and restore it into the data folder, the database and the storage of large messages\n" +
			"that the settings name. All three must be empty. The database may be of the other kind: this is how\n" +
			"an installation moves from SQLite to PostgreSQL, and back.\n\n" +
			"Mail and webhooks that were queued at the time of the backup may have been sent since. They are held\n" +
			"until `postroom held release` or `postroom held drop`. New mail is not held.",
	}
	return p.onConfig(cmd, p.restore)
}

// restore claims an empty data folder, fills the installation from a backup, and prints
// what is held.
func (p program) restore(ctx context.Context, cfg Config, args []string) (err error) {
	b, err := backup.Open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	mine, err := cfg.claimEmpty()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mine.release()) }()
	log := newLogger(cfg, p.Stderr)
	if err := cfg.fillEmpty(ctx, b, log); err != nil {
		return fmt.Errorf("%w\nThe restore failed: empty the data folder %s, the database and the storage of large messages before you retry", err, cfg.Data)
	}
	s, err := cfg.openForCommand(ctx, true, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	held, err := s.Held(ctx)
	if err != nil {
		return err
	}
	return p.printf("Restored the data as of %s: %s.\n%s", b.At.UTC().Format(time.RFC3339), contentOf(b.Manifest), heldText(held))
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

// fillEmpty installs the secret that a backup contains, if it does, checks that the secret
// of the settings is the one of the backup, and restores it.
func (c Config) fillEmpty(ctx context.Context, b *backup.Backup, log *slog.Logger) error {
	given, err := b.Secret()
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Secret == "":
		return fmt.Errorf("the folder does not contain the installation secret: set %sSECRET", envPrefix)
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
		return fmt.Errorf("the secret in %sSECRET is not the one in use when the folder was written", envPrefix)
	}
	keys, err := derive(in)
	if err != nil {
		return err
	}
	return c.withBlobs(ctx, func(blobs store.Blobs) error {
		return b.Restore(ctx, store.Config{
			Database: string(c.Database), CursorKey: keys.cursors, SealKey: keys.seal, Now: time.Now, Log: log,
		}, blobs)
	})
}
