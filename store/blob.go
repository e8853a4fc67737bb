package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Blobs is a folder of files that are written once: raw mail that is too large
// for a row. A file is complete and on the disk before its key is given out.
type Blobs struct {
	root *os.Root
	now  func() time.Time

	mu      sync.Mutex
	durable map[string]bool // folders whose own entry is surely on the disk
}

// OpenBlobs opens the folder dir, and makes it when it is missing.
func OpenBlobs(dir string, now func() time.Time) (*Blobs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the blob folder: %w", err)
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return nil, fmt.Errorf("make the blob folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the blob folder: %w", err)
	}
	return &Blobs{root: root, now: now, durable: map[string]bool{}}, nil
}

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // the operator's own folder
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close closes the folder.
func (b *Blobs) Close() error { return b.root.Close() }

const tempPrefix = "tmp-"

// Put writes r under a new key: a temporary file, fsync, rename, fsync of the
// folders.
func (b *Blobs) Put(r io.Reader) (key string, err error) {
	id := NewID("", b.now())
	dir := id[24:]
	key = path.Join(dir, id)
	temp := path.Join(dir, tempPrefix+id)
	if err := b.mkdir(dir); err != nil {
		return "", err
	}
	if err := b.writeFile(temp, r); err != nil {
		return "", errors.Join(blobError(err), b.remove(temp))
	}
	if err := b.root.Rename(temp, key); err != nil {
		return "", errors.Join(blobError(err), b.remove(temp))
	}
	if err := b.sync(dir); err != nil {
		return "", err
	}
	return key, nil
}

// mkdir makes sure of a folder and its entry. Who comes second waits: another's
// folder may be there but not on the disk.
func (b *Blobs) mkdir(dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.durable[dir] {
		return nil
	}
	if err := b.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return blobError(err)
	}
	if err := b.sync("."); err != nil {
		return err
	}
	b.durable[dir] = true
	return nil
}

func (b *Blobs) writeFile(name string, r io.Reader) error {
	f, err := b.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sync makes the entries of a folder durable.
func (b *Blobs) sync(dir string) error {
	f, err := b.root.Open(dir)
	if err != nil {
		return blobError(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return blobError(err)
	}
	return nil
}

// Open opens a blob for reading. ErrNotFound when there is none.
func (b *Blobs) Open(key string) (*os.File, error) {
	f, err := b.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", key, ErrNotFound)
	}
	if err != nil {
		return nil, blobError(err)
	}
	return f, nil
}

// Delete removes a blob. One that is not there is no error.
func (b *Blobs) Delete(key string) error { return b.remove(key) }

func (b *Blobs) remove(name string) error {
	if err := b.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return blobError(err)
	}
	return nil
}

// each calls f with the key of every blob, and with every temporary file that
// was left behind, last written before cutoff.
func (b *Blobs) each(cutoff time.Time, f func(key string, temporary bool) error) error {
	return fs.WalkDir(b.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(cutoff) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(name, strings.HasPrefix(d.Name(), tempPrefix))
	})
}

func blobError(err error) error {
	if isDiskFull(err) {
		return fmt.Errorf("blob folder: %w: %w", ErrFull, err)
	}
	return fmt.Errorf("blob folder: %w: %w", ErrUnavailable, err)
}
