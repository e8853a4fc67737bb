// Package backup copies a running installation, or one account of it, into a folder, and
// restores it, into a database of either kind.
//
// A backup contains a file of JSON lines for each table, first the names of the columns
// and then a line for each row; each message as an .eml file, as it was received or sent,
// which mail programs can read; the large attachments of drafts; and, unless left out, the
// installation secret, without which sealed values cannot be opened. To keep them
// consistent, Write first prevents the deletion of blobs, then reads all rows as of one
// moment, then copies the blobs. The folder gets its final name after everything is
// written, synced and checked, so a folder with that name is complete.
//
// Mail and webhooks that wait in a backup may have been sent since, so a restore holds
// them (store.Hold).
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

	"github.com/postroom/postroom/store"
)

// Names of the files in a backup.
const (
	manifestFile = "backup.json"
	secretFile   = "secret"
	tableFolder  = "tables/"
	mailFolder   = "mail/"
	// sentFolder holds messages that belong to no inbox.
	sentFolder = "sent"
	blobFolder = "blobs/"
	// sumsFile lists all other files in the format of sha256sum -c.
	sumsFile = "SHA256SUMS"
)

// format is the version of the layout of the folder.
const format = 2

// Manifest describes a backup.
type Manifest struct {
	Format   int    `json:"format"`
	Postroom string `json:"postroom"`          // version of Postroom that wrote it
	Account  string `json:"account,omitempty"` // the only account, if one was chosen
	store.Portable
	Rows     map[string]int64 `json:"rows"`     // by table
	Messages int64            `json:"messages"` // files
	// Missing lists the messages whose content is missing or has the wrong size. The
	// backup contains everything else.
	Missing []string `json:"missing"`
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

// Open opens the backup in a folder, and verifies the checksums of its files.
func Open(ctx context.Context, dir string) (*Backup, error) {
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
		err = fmt.Errorf("%s is not a backup that this program can read: %w", dir, err)
	} else {
		err = b.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return b, nil
}

// Close closes the backup.
func (b *Backup) Close() error { return b.root.Close() }

// check compares each file with its checksum.
func (b *Backup) check(ctx context.Context) error {
	sums, err := b.root.Open(sumsFile)
	if err != nil {
		return fmt.Errorf("the backup is not whole: %w", err)
	}
	defer func() { _ = sums.Close() }() // it was only read
	seen := map[string]bool{}
	var messages int64
	lines := bufio.NewScanner(sums)
	for lines.Scan() {
		if err := ctx.Err(); err != nil {
			return err
		}
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return fmt.Errorf("the backup is damaged: %s has the line %q", sumsFile, lines.Text())
		}
		got, err := b.sum(name)
		if err != nil {
			return fmt.Errorf("the backup is not whole: %w", err)
		}
		if got != want {
			return fmt.Errorf("the backup is damaged: %s is not what was written", name)
		}
		if strings.HasPrefix(name, mailFolder) {
			messages++
		} else {
			seen[name] = true
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if messages != b.Messages {
		return fmt.Errorf("the backup is not whole: %d of %d messages are listed", messages, b.Messages)
	}
	for table, n := range b.Rows {
		if name := fileOfTable(table); n > 0 && !seen[name] {
			return fmt.Errorf("the backup is not whole: %s is not listed", name)
		}
	}
	if !seen[manifestFile] || b.HasSecret && !seen[secretFile] {
		return fmt.Errorf("the backup is not whole: %s does not list %s and %s", sumsFile, manifestFile, secretFile)
	}
	return nil
}

// sum returns the checksum of a file.
func (b *Backup) sum(name string) (string, error) {
	f, err := b.root.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// Secret returns the installation secret, or os.ErrNotExist if the backup does not
// contain it.
func (b *Backup) Secret() (string, error) {
	if !b.HasSecret {
		return "", fmt.Errorf("the backup has no install secret: %w", os.ErrNotExist)
	}
	text, err := b.root.ReadFile(secretFile)
	return strings.TrimSpace(string(text)), err
}

func fileOfTable(table string) string { return tableFolder + table + ".jsonl" }

// exportedFile stands for content that is in a file of its own.
type exportedFile struct {
	File string `json:"file"`
	Size int64  `json:"size"` // that the content should have
}

// exportedBytes is the JSON form of bytes.
type exportedBytes struct {
	Base64 string `json:"base64"`
}
