// Package backup copies an install into a folder, while it serves, and back.
//
// A backup is the database as it was at one moment, every blob that its rows name,
// and the install secret, without which nothing that is sealed in the database can
// be opened. The order makes them agree: first blobs are kept from being deleted,
// then the database is written, then the blobs that it names are copied; what came
// later is not in it. The folder gets its name when all is written, on the disk and
// read again: one that has the name is whole.
//
// What waits in a backup to be sent or posted may have been sent and posted since,
// so a restore holds it (store.Hold).
package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/postroom/postroom/store"
)

// The files of a backup.
const (
	manifestFile = "backup.json"
	databaseFile = "database"
	secretFile   = "secret"
	blobFolder   = "blobs/"
	// sumsFile lists all others, as sha256sum -c reads it.
	sumsFile = "SHA256SUMS"
)

// format is the version of the layout.
const format = 1

// Manifest says what a backup is of.
type Manifest struct {
	Format   int    `json:"format"`
	Postroom string `json:"postroom"` // version of the program that wrote it
	Engine   string `json:"engine"`   // "sqlite" or "postgresql"
	Schema   int64  `json:"schema"`
	// Begin and End enclose the moment that the backup shows.
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	store.SnapshotCounts
	// MissingBlobs are those that rows name and the storage does not have.
	MissingBlobs int64 `json:"missing_blobs"`
	// Fingerprint is of the install secret, HasSecret whether that is in it.
	Fingerprint string `json:"secret_fingerprint"`
	HasSecret   bool   `json:"has_secret"`
}

// Backup is one that was written. It must be closed after use.
type Backup struct {
	Manifest
	root *os.Root
}

// Open opens the backup in a folder. It has yet to be checked.
func Open(dir string) (*Backup, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the backup: %w", err)
	}
	b := &Backup{root: root}
	text, err := root.ReadFile(manifestFile)
	if err == nil {
		err = json.Unmarshal(text, &b.Manifest)
	}
	if err == nil && b.Format != format {
		err = fmt.Errorf("its format is %d, and this program knows %d", b.Format, format)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is no backup that this program can read: %w", dir, err), root.Close())
	}
	return b, nil
}

// Close closes it.
func (b *Backup) Close() error { return b.root.Close() }

// Check reads the whole backup and holds it against its checksums.
func (b *Backup) Check(ctx context.Context) error {
	var files, blobs int64
	err := b.each(func(name, sum string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := b.sum(name)
		if err != nil {
			return fmt.Errorf("the backup is not whole: %w", err)
		}
		if got != sum {
			return fmt.Errorf("the backup is damaged: %s is not what was written", name)
		}
		files++
		if strings.HasPrefix(name, blobFolder) {
			blobs++
		}
		return nil
	})
	if err != nil {
		return err
	}
	want := int64(2) // the manifest and the database
	if b.HasSecret {
		want++
	}
	if files-blobs != want || blobs != b.Blobs-b.MissingBlobs {
		return fmt.Errorf("the backup is not whole: %s lists %d files and %d blobs, of %d and %d", sumsFile, files-blobs, blobs, want, b.Blobs-b.MissingBlobs)
	}
	return nil
}

// each calls f with the name and the checksum of each file, in the order in which
// they were written.
func (b *Backup) each(f func(name, sum string) error) (err error) {
	sums, err := b.root.Open(sumsFile)
	if err != nil {
		return fmt.Errorf("the backup is not whole: %w", err)
	}
	defer func() { err = errors.Join(err, sums.Close()) }()
	lines := bufio.NewScanner(sums)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return fmt.Errorf("the backup is damaged: %s has the line %q", sumsFile, lines.Text())
		}
		if err := f(name, sum); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (b *Backup) sum(name string) (sum string, err error) {
	f, err := b.root.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
