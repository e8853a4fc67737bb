package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/disk"
	"github.com/postroom/postroom/internal/ids"
)

// Blobs keeps raw mail that is too large for a row. A blob is written once and
// never changed. Errors are ErrNotFound, ErrFull and ErrUnavailable; after any
// of them trying again does no harm. The methods are safe for use by many
// goroutines.
type Blobs interface {
	// Put writes the size bytes of r under a new key. When it returns nil they
	// are durable; when it returns an error, what may be left of them has no row
	// and is swept away later. It never holds all of r in memory.
	Put(ctx context.Context, r io.Reader, size int64) (key string, err error)
	// Open opens a blob for reading; ctx is for all that is read. It returns
	// ErrNotFound if there is none.
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
	// Delete removes a blob. It returns nil when the blob does not exist.
	Delete(ctx context.Context, key string) error
	// Each calls f with the key of each blob that was written before a time, and
	// ends with the first error of f.
	Each(ctx context.Context, before time.Time, f func(key string) error) error
	// Close frees what the storage itself holds.
	Close() error
}

// BlobLinker is implemented by storage whose blobs others can fetch by
// themselves.
type BlobLinker interface {
	// Link returns a URL from which anyone can download the blob, saved as a file
	// with this name, until ttl has passed. It is empty if the storage is not
	// reachable by clients.
	Link(ctx context.Context, key, name string, ttl time.Duration) (string, error)
}

// BlobRestorer is implemented by storage that takes a blob back under the key that
// it had.
type BlobRestorer interface {
	// Restore writes a blob as Put does.
	Restore(ctx context.Context, key string, r io.Reader, size int64) error
}

// NewBlobKey makes a key that no one has used: an identifier in one of 1024
// folders.
func NewBlobKey(now time.Time) string {
	return blobKey(NewLongID("", now))
}

func blobKey(id string) string { return path.Join(id[24:], id) }

// IsBlobKey reports whether name is a key that NewBlobKey may have made.
func IsBlobKey(name string) bool {
	_, id := path.Split(name)
	_, err := ids.Encoding.DecodeString(id)
	return err == nil && len(id) == ids.LongBody && name == blobKey(id)
}

// blobTime returns when the key of a blob was created. Names that are not keys
// have no time.
func blobTime(key string) (time.Time, bool) {
	if !IsBlobKey(key) {
		return time.Time{}, false
	}
	return idTime("", path.Base(key))
}

// BlobFolder keeps blobs as files in a folder. A file is complete and on the
// disk before its key is assigned.
type BlobFolder struct {
	root *os.Root
	now  func() time.Time
}

// OpenBlobFolder opens the folder dir, and makes it when it is missing. now
// dates the keys.
func OpenBlobFolder(dir string, now func() time.Time) (*BlobFolder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the blob folder: %w", err)
	}
	if err := disk.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("make the blob folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the blob folder: %w", err)
	}
	return &BlobFolder{root, now}, nil
}

// Close closes the folder.
func (b *BlobFolder) Close() error { return b.root.Close() }

const tempPrefix = "tmp-"

// Put writes a temporary file, fsyncs and renames it, and fsyncs the folders.
func (b *BlobFolder) Put(ctx context.Context, r io.Reader, size int64) (string, error) {
	key := NewBlobKey(b.now())
	if err := b.Restore(ctx, key, r, size); err != nil {
		return "", err
	}
	return key, nil
}

// Restore is Put under a key that is given.
func (b *BlobFolder) Restore(_ context.Context, key string, r io.Reader, size int64) error {
	dir, id := path.Split(key)
	dir = path.Clean(dir)
	temp := path.Join(dir, tempPrefix+id)
	if err := b.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return blobError(err)
	}
	f, err := b.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return blobError(err)
	}
	if err := fill(f, r, size); err != nil {
		return errors.Join(blobError(err), b.remove(temp))
	}
	if err := b.root.Rename(temp, key); err != nil {
		return errors.Join(blobError(err), b.remove(temp))
	}
	if err := b.sync(dir); err != nil {
		return err
	}
	return b.sync(".") // the folder may be new, and whoever made it may not have come to this yet
}

// fill writes the size bytes of r to the disk, and closes the file.
func fill(f *os.File, r io.Reader, size int64) error {
	n, err := io.Copy(f, r)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes instead of %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sync makes the entries of a folder durable.
func (b *BlobFolder) sync(dir string) error {
	f, err := b.root.Open(dir)
	if err != nil {
		return blobError(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return blobError(err)
	}
	return nil
}

// Open opens the file.
func (b *BlobFolder) Open(_ context.Context, key string) (io.ReadSeekCloser, error) {
	f, err := b.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return nil, blobError(err)
	}
	return f, nil
}

// Delete removes the file.
func (b *BlobFolder) Delete(_ context.Context, key string) error { return b.remove(key) }

func (b *BlobFolder) remove(name string) error {
	if err := b.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blobError(err)
	}
	return nil
}

// Each walks the folder. A temporary file that was left behind has no row either
// way, and comes under its own name.
func (b *BlobFolder) Each(ctx context.Context, before time.Time, f func(key string) error) error {
	return fs.WalkDir(b.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(before) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(name)
	})
}

func blobError(err error) error {
	if isDiskFull(err) {
		return fmt.Errorf("blob folder: %w: %w", ErrFull, err)
	}
	return fmt.Errorf("blob folder: %w: %w", ErrUnavailable, err)
}

const (
	// blobPage is how many blobs are looked up at a time.
	blobPage = 500
)

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SweepBlobs removes the blobs, older than blobTTL, that no row names: what a
// crash between blob and row leaves behind. Both the time in the key and the
// time that the storage knows must be that old, since the two may come from
// different clocks. It returns how many went.
func (s *Store) SweepBlobs(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	n := 0
	var keys []string
	flush := func() error {
		gone, err := s.removeUnnamed(ctx, keys)
		n, keys = n+gone, keys[:0]
		return err
	}
	before := s.now().Add(-blobTTL)
	err := s.blobs.Each(ctx, before, func(key string) error {
		if at, ok := blobTime(key); ok && !at.Before(before) {
			return nil
		}
		if keys = append(keys, key); len(keys) < blobPage {
			return nil
		}
		return flush()
	})
	if err = errors.Join(err, flush()); err != nil {
		return n, fmt.Errorf("sweep blobs: %w", err)
	}
	return n, nil
}

// errStaleBlob means that a blob waited so long for its row that it may be
// removed. The caller can write it again.
var errStaleBlob = fmt.Errorf("%w: the content was written too long ago", ErrUnavailable)

// checkBlobs refuses blobs that are too old for a row to name them for the first
// time. It runs in the transaction that writes the rows.
func checkBlobs(now time.Time, keys ...*string) error {
	for _, key := range keys {
		if key == nil {
			continue
		}
		if at, ok := blobTime(*key); ok && now.Sub(at) > blobTTL/2 {
			return fmt.Errorf("blob %s: %w", *key, errStaleBlob)
		}
	}
	return nil
}
