package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Snapshot is the database as it was at one moment: it lies in a file, and says
// which blobs belong to it. No transaction is open for it: one that stayed open
// while blobs are copied would keep PostgreSQL from cleaning up what was sent
// meanwhile. It must be closed after use.
type Snapshot struct {
	Engine string // of the database, which alone can load the file
	Schema int64  // version
	Counts SnapshotCounts
	// From and To enclose the moment.
	From, To time.Time

	keys *os.File // of the blobs, one a line
}

// SnapshotCounts say how much a snapshot holds.
type SnapshotCounts struct {
	Inboxes  int64 `db:"inboxes" json:"inboxes"`
	Messages int64 `db:"messages" json:"messages"`
	Events   int64 `db:"events" json:"events"`
	Blobs    int64 `db:"blobs" json:"blobs"`
}

const (
	snapshotCounts = `SELECT (SELECT count(*) FROM inboxes) AS inboxes, (SELECT count(*) FROM messages) AS messages,
		(SELECT count(*) FROM events) AS events,
		(SELECT count(DISTINCT blob_key) FROM contents) + (SELECT count(DISTINCT blob_key) FROM draft_contents) AS blobs`
	snapshotBlobs = `SELECT DISTINCT blob_key FROM (SELECT blob_key FROM contents UNION ALL SELECT blob_key FROM draft_contents) b
		WHERE blob_key > $1 ORDER BY blob_key LIMIT $2`
)

// Snapshot writes the database into a new file at path, while others go on with
// it, and reads back what it has written. On PostgreSQL that is work for pg_dump
// and pg_restore, which must be on this machine.
func (s *Store) Snapshot(ctx context.Context, path string) (*Snapshot, error) {
	p, err := s.migrator()
	if err != nil {
		return nil, err
	}
	schema, err := p.GetDBVersion(ctx)
	if err != nil {
		return nil, s.wrap(err, "schema version")
	}
	snap := &Snapshot{Engine: s.engine.Name(), Schema: schema, From: s.now()}
	v, err := s.engine.Dump(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("write the database to %s: %w", path, err)
	}
	snap.To = s.now()
	err = sqlx.GetContext(ctx, v, &snap.Counts, snapshotCounts)
	if err == nil {
		snap.keys, err = writeBlobKeys(ctx, v, filepath.Dir(path))
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("read what was written: %w", err), snap.Close())
	}
	return snap, nil
}

// writeBlobKeys writes the keys of the blobs that rows name into a temporary
// file in a folder.
func writeBlobKeys(ctx context.Context, v engine.View, dir string) (_ *os.File, err error) {
	f, err := os.CreateTemp(dir, "blobs-*.tmp")
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriter(f)
	for after, n := "", blobPage; n == blobPage && err == nil; {
		var keys []string
		if err = sqlx.SelectContext(ctx, v, &keys, snapshotBlobs, after, blobPage); err != nil {
			break
		}
		for _, key := range keys {
			_, _ = out.WriteString(key + "\n") // Flush returns its error
			after = key
		}
		n = len(keys)
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// EachBlob calls f with the key of each blob that a row of the snapshot names,
// and ends with the first error of f.
func (s *Snapshot) EachBlob(_ context.Context, f func(key string) error) error {
	if _, err := s.keys.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("blobs of the snapshot: %w", err)
	}
	lines := bufio.NewScanner(s.keys)
	for lines.Scan() {
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	return errIn("blobs of the snapshot", lines.Err())
}

// Close removes what the snapshot needs beside its file, which stays.
func (s *Snapshot) Close() error {
	if s.keys == nil {
		return nil
	}
	return errors.Join(s.keys.Close(), os.Remove(s.keys.Name()))
}

// keepPrefix begins the names of the settings that keep blobs.
const keepPrefix = "keep blobs for "

// KeepBlobs keeps every blob that is there from being deleted until a time, unless
// it is called again under the same name. What is to be deleted by then goes when
// unnamed blobs are swept.
func (s *Store) KeepBlobs(ctx context.Context, name string, until time.Time) error {
	const (
		tidy = `DELETE FROM settings WHERE name LIKE $1 AND cast(value AS bigint) <= $2`
		keep = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	)
	return s.inTx(ctx, "keep blobs", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, tidy, keepPrefix+"%", NewTime(s.now())); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, keep, keepPrefix+name, fmt.Sprint(NewTime(until).UnixMicro()))
		return err
	})
}

// blobsKept says whether no blob may be deleted now. Who asks has committed that
// nothing names the blob any more: so a backup that began to keep blobs later
// does not name it either.
func (s *Store) blobsKept(ctx context.Context) (bool, error) {
	const q = `SELECT count(*) FROM settings WHERE name LIKE $1 AND cast(value AS bigint) > $2`
	var n int
	err := s.read.GetContext(ctx, &n, q, keepPrefix+"%", NewTime(s.now()))
	return n > 0, s.wrap(err, "whether blobs are kept")
}

// signOut ends what opens the dashboard: who was removed, or had their password
// taken away, after the backup was made is not to come back by a session or a link
// of before.
const signOut = `DELETE FROM user_sessions; DELETE FROM user_links;`

// Load fills an empty database with what Snapshot wrote, holds what waits in it
// (see Hold), ends the sessions of people, and brings the schema up to date. When it fails before the last of
// these the database is as empty as it was.
func Load(ctx context.Context, cfg Config, path string) error {
	d := engine.New(cfg.Database, 0)
	if err := d.Load(ctx, path, strings.TrimSpace(hold)+"\n"+signOut); err != nil {
		return fmt.Errorf("load the database from %s: %w", path, err)
	}
	_, err := Migrate(ctx, cfg)
	return err
}
