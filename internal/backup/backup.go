// Package backup copies a running installation to a directory, and restores it.
//
// A backup contains a snapshot of the database, every blob that it references,
// and, unless left out, the installation secret, without which sealed values in the
// database cannot be opened. To keep them consistent, Write first prevents the
// deletion of blobs, then writes the database, then copies the blobs. The
// directory gets its final name after everything is written, synced and
// checked, so a directory with that name is complete.
//
// Mail and webhooks that wait in a backup may have been sent since, so a
// restore holds them (store.Hold).
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

// Names of the files in a backup.
const (
	manifestFile = "backup.json"
	databaseFile = "database"
	secretFile   = "secret"
	blobFolder   = "blobs/"
	// sumsFile lists all other files in the format of sha256sum -c.
	sumsFile = "SHA256SUMS"
)

// format is the version of the directory layout.
const format = 1

// Manifest describes a backup.
type Manifest struct {
	Format   int    `json:"format"`
	Postroom string `json:"postroom"` // version of Postroom that wrote it
	Engine   string `json:"engine"`   // "sqlite" or "postgresql"
	Schema   int64  `json:"schema"`
	// The snapshot was taken between Begin and End.
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	store.SnapshotCounts
	// MissingBlobs is the number of referenced blobs missing from the storage.
	MissingBlobs int64 `json:"missing_blobs"`
	// Fingerprint identifies the installation secret. HasSecret reports whether the
	// backup contains it.
	Fingerprint string `json:"secret_fingerprint"`
	HasSecret   bool   `json:"has_secret"`
}

// Backup is an open backup. Close it after use.
type Backup struct {
	Manifest
	root *os.Root
}

// Open opens the backup in a directory. It does not verify the contents; call
// Check.
func Open(dir string) (*Backup, error) {
	b := &Backup{}
	root, err := openFolder(dir, "a", "backup", manifestFile, &b.Manifest, &b.Format)
	b.root = root
	return b, err
}

// openFolder opens a backup or an export, as article and what name it, and reads the file
// that describes it.
func openFolder(dir, article, what, file string, into any, version *int) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the %s: %w", what, err)
	}
	text, err := root.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err == nil && *version != format {
		err = fmt.Errorf("its format is %d, and this program knows %d", *version, format)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not %s %s that this program can read: %w", dir, article, what, err), root.Close())
	}
	return root, nil
}

// Close closes the backup.
func (b *Backup) Close() error { return b.root.Close() }

// Check reads all files of the backup and verifies their checksums.
func (b *Backup) Check(ctx context.Context) error {
	var files, blobs int64
	err := b.checkFiles(ctx, "backup", func(name string) {
		files++
		if strings.HasPrefix(name, blobFolder) {
			blobs++
		}
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

// checkFiles compares each file with its checksum, and calls seen with its name. The
// errors name what, "backup" or "export".
func (b *Backup) checkFiles(ctx context.Context, what string, seen func(name string)) error {
	return b.each(func(name, sum string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		got, err := sumOf(b.root.Open(name))
		if err != nil {
			return fmt.Errorf("the %s is not whole: %w", what, err)
		}
		if got != sum {
			return fmt.Errorf("the %s is damaged: %s is not what was written", what, name)
		}
		seen(name)
		return nil
	})
}

// each calls f with the name and checksum of each file, in the order of
// writing.
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

// sumOf returns the checksum of a file that was opened, and closes it.
func sumOf(f *os.File, err error) (string, error) {
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}
