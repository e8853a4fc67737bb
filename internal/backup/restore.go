package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postroom/postroom/store"
)

// errSome stops a listing at the first blob.
var errSome = errors.New("there is one")

// Restore restores the blobs and the database of a checked backup in directory
// dir to blobs and cfg, which must be empty. It holds pending deliveries. The
// caller must install the secret first.
func (b *Backup) Restore(ctx context.Context, dir string, cfg store.Config, blobs store.Blobs) error {
	to, err := wantNoBlobs(ctx, blobs)
	if err != nil {
		return err
	}
	err = b.each(func(name, _ string) error {
		key, ok := strings.CutPrefix(name, blobFolder)
		if !ok {
			return nil
		}
		if !store.IsBlobKey(key) {
			return fmt.Errorf("the backup is damaged: %q is not the name of a blob", name)
		}
		f, err := b.root.Open(name)
		if err != nil {
			return err
		}
		return restoreBlob(ctx, to, key, f)
	})
	if err != nil {
		return fmt.Errorf("restore blobs: %w", err)
	}
	return store.Load(ctx, cfg, filepath.Join(dir, databaseFile), b.Schema)
}

// wantNoBlobs returns an error if the blob storage is not empty. Two
// installations with the same storage would delete each other's blobs.
func wantNoBlobs(ctx context.Context, blobs store.Blobs) (store.BlobRestorer, error) {
	to, ok := blobs.(store.BlobRestorer)
	if !ok {
		return nil, fmt.Errorf("%T takes no blobs back", blobs)
	}
	const everything = 100 * 365 * 24 * time.Hour
	err := blobs.Each(ctx, time.Now().Add(everything), func(string) error { return errSome })
	if errors.Is(err, errSome) {
		return nil, errors.New("the storage of blobs is not empty")
	}
	return to, err
}

// restoreBlob restores a blob from a file, and closes the file.
func restoreBlob(ctx context.Context, to store.BlobRestorer, key string, f *os.File) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return to.Restore(ctx, key, f, info.Size())
}

// Secret returns the installation secret, or os.ErrNotExist if the backup does not
// contain it.
func (b *Backup) Secret() (string, error) {
	if !b.HasSecret {
		return "", fmt.Errorf("the backup has no install secret: %w", os.ErrNotExist)
	}
	f, err := b.root.Open(secretFile)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return strings.TrimSpace(string(text)), errors.Join(err, f.Close())
}
