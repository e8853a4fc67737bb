package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/disk"
)

// Dump copies the file as one transaction sees it; others write on meanwhile.
func (d *sqliteEngine) Dump(ctx context.Context, path string) (View, error) {
	if err := makePrivate(path); err != nil { // an empty file, which SQLite accepts
		return nil, err
	}
	// A connection of its own: those that only read may not write elsewhere either.
	db, err := d.connect(ctx, []string{"busy_timeout(30000)"}, "")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `VACUUM INTO $1`, path)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	if err := disk.SyncFile(path); err != nil {
		return nil, err
	}
	copied, err := (&sqliteEngine{path: path}).connect(ctx, []string{"query_only(1)"}, "&mode=ro")
	if err != nil {
		return nil, err
	}
	if err := checkSQLite(ctx, copied); err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	return copied, nil
}

// checkSQLite reads the whole database and looks for damage.
func checkSQLite(ctx context.Context, db *sqlx.DB) error {
	found, err := damageOf(ctx, db, 5)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the database is damaged: %v", found)
	}
	return err
}

func damageOf(ctx context.Context, db *sqlx.DB, most int) ([]string, error) {
	var found []string
	if err := db.SelectContext(ctx, &found, fmt.Sprintf(`PRAGMA integrity_check(%d)`, most)); err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	if slices.Equal(found, []string{"ok"}) {
		found = nil
	}
	rows, err := db.QueryxContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return nil, fmt.Errorf("check the database: %w", err)
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for rows.Next() && len(found) < most {
		row, err := rows.SliceScan()
		if err != nil {
			return nil, fmt.Errorf("check the database: %w", err)
		}
		found = append(found, fmt.Sprintf("a row of %v refers to one that is not there", row))
	}
	return found, rows.Err()
}

// Check stops at a thousand findings.
func (d *sqliteEngine) Check(ctx context.Context) (found []string, err error) {
	db, err := d.connect(ctx, []string{"busy_timeout(30000)", "query_only(1)"}, "")
	if err != nil {
		return nil, err
	}
	found, err = damageOf(ctx, db, 1000)
	if err != nil && ctx.Err() == nil { // a database that is damaged may not be readable at all
		found, err = append(found, err.Error()), nil
	}
	return found, errors.Join(err, db.Close())
}

// Load works on a copy under another name, which takes its place when all is
// done.
func (d *sqliteEngine) Load(ctx context.Context, path, then string) (err error) {
	if _, err := os.Stat(d.path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("there is a database at %s already", d.path), err)
	}
	temp := d.path + ".restoring"
	defer func() {
		if err != nil {
			err = errors.Join(err, removeSQLite(temp))
		}
	}()
	if err := removeSQLite(temp); err != nil {
		return err
	}
	if err := copyFile(path, temp); err != nil {
		return err
	}
	db, err := (&sqliteEngine{path: temp}).connect(ctx, []string{"synchronous(FULL)", "foreign_keys(1)"}, "")
	if err != nil {
		return err
	}
	if err = checkSQLite(ctx, db); err == nil {
		_, err = db.ExecContext(ctx, "BEGIN; "+then+" COMMIT")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, d.path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(d.path))
}

// removeSQLite removes a database with the files beside it.
func removeSQLite(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// copyFile makes a private copy of a file, and returns when it is on the disk.
func copyFile(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
