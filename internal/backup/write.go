package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/disk"
	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// keepFor is how long each call protects blobs from deletion, and keepEvery
	// the interval between calls.
	keepFor   = 10 * time.Minute
	keepEvery = time.Minute
)

// Config configures Write.
type Config struct {
	Store *store.Store
	Blobs store.Blobs
	// Dir is the directory to create. It must not exist.
	Dir string
	// Secret is the installation secret, or empty to leave it out. Fingerprint is
	// its fingerprint.
	Secret, Fingerprint string
	// Version is the version of Postroom.
	Version string
	Now     func() time.Time
}

// Write creates a backup of a running installation and checks it. It returns an
// error if Dir exists. If it fails, it removes all files.
func Write(ctx context.Context, cfg Config) (m Manifest, err error) {
	err = cfg.inNewFolder(ctx, func(ctx context.Context, w *writer) error {
		m, err = w.write(ctx)
		return err
	}, func(dir string) error {
		b, err := Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(b.Check(ctx), b.Close())
	})
	return m, err
}

// inNewFolder calls write to fill a temporary folder, while no blob is deleted, and
// check, and gives the folder the name Dir. If anything fails, it removes the folder.
func (cfg Config) inNewFolder(ctx context.Context, write func(context.Context, *writer) error, check func(dir string) error) (err error) {
	if _, err := os.Lstat(cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s is there already, and is not overwritten", cfg.Dir), err)
	}
	parent, name := filepath.Dir(cfg.Dir), filepath.Base(cfg.Dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	part, err := os.MkdirTemp(parent, name+".partial-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free, err := keepBlobs(ctx, cfg, filepath.Base(part), cancel)
	if err != nil {
		return err
	}
	w := &writer{Config: cfg, dir: part, folders: map[string]bool{}}
	err = w.fill(ctx, write)
	if err = errors.Join(err, free()); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err := check(part); err != nil {
		return err
	}
	if err := os.Rename(part, cfg.Dir); err != nil {
		return err
	}
	return disk.SyncDir(parent)
}

// keepBlobs protects blobs from deletion until free is called. If it cannot
// extend the protection, it calls fail to end the backup.
func keepBlobs(ctx context.Context, cfg Config, name string, fail context.CancelCauseFunc) (free func() error, err error) {
	if err := cfg.Store.KeepBlobs(ctx, name, cfg.Now().Add(keepFor)); err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		work.Every(keeping, keepEvery, func(context.Context) {
			if err := cfg.Store.KeepBlobs(ctx, name, cfg.Now().Add(keepFor)); err != nil {
				fail(err)
			}
		})
	})
	return func() error {
		stop()
		running.Wait()
		return cfg.Store.KeepBlobs(context.WithoutCancel(ctx), name, cfg.Now())
	}, nil
}

// writer writes a backup to dir.
type writer struct {
	Config
	dir     string
	sums    *os.File
	folders map[string]bool // created directories
}

// fill calls write, and syncs the list of checksums and the folders.
func (w *writer) fill(ctx context.Context, write func(context.Context, *writer) error) (err error) {
	if w.sums, err = os.OpenFile(filepath.Join(w.dir, sumsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	err = write(ctx, w)
	if err == nil {
		err = w.sums.Sync()
	}
	err = errors.Join(err, w.sums.Close())
	for folder := range w.folders {
		err = errors.Join(err, disk.SyncDir(folder))
	}
	return errors.Join(err, disk.SyncDir(w.dir))
}

func (w *writer) write(ctx context.Context) (m Manifest, err error) {
	snap, err := w.Store.Snapshot(ctx, filepath.Join(w.dir, databaseFile))
	if err != nil {
		return m, err
	}
	m = Manifest{
		Format: format, Postroom: w.Version, Engine: snap.Engine, Schema: snap.Schema, Begin: snap.From.UTC(), End: snap.To.UTC(),
		SnapshotCounts: snap.Counts, Fingerprint: w.Fingerprint, HasSecret: w.Secret != "",
	}
	err = snap.EachBlob(ctx, func(key string) error {
		err := w.copyBlob(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			m.MissingBlobs++
			return nil
		}
		return err
	})
	if err = errors.Join(err, snap.Close()); err != nil {
		return m, err
	}
	if err := w.describe(manifestFile, m); err != nil {
		return m, err
	}
	sum, err := sumOf(os.Open(filepath.Join(w.dir, databaseFile)))
	if err != nil {
		return m, err
	}
	return m, w.note(databaseFile, sum)
}

// describe writes the file that describes the backup or the export, and the secret.
func (w *writer) describe(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	err = w.create(name, bytes.NewReader(append(text, '\n')))
	if err == nil && w.Secret != "" {
		err = w.create(secretFile, strings.NewReader(w.Secret+"\n"))
	}
	return err
}

func (w *writer) copyBlob(ctx context.Context, key string) (err error) {
	if !store.IsBlobKey(key) {
		return fmt.Errorf("a row names the blob %q, which is none", key)
	}
	r, err := w.Blobs.Open(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return w.create(blobFolder+key, r)
}

// create writes a file and records its checksum.
func (w *writer) create(name string, r io.Reader) error {
	f, err := w.open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return f.close(err)
}

// newFile is a file that is being written.
type newFile struct {
	io.Writer
	w    *writer
	name string
	file *os.File
	sum  hash.Hash
}

func (w *writer) open(name string) (*newFile, error) {
	if err := w.makeFolder(path.Dir(name)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(w.dir, filepath.FromSlash(name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &newFile{io.MultiWriter(f, sum), w, name, f, sum}, nil
}

// close ends the file, unless err is not nil, and records its checksum.
func (f *newFile) close(err error) error {
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err != nil {
		return err
	}
	return f.w.note(f.name, hex.EncodeToString(f.sum.Sum(nil)))
}

// makeFolder creates a directory of the backup and its parents.
func (w *writer) makeFolder(name string) error {
	folder := filepath.Join(w.dir, filepath.FromSlash(name))
	if name == "." || w.folders[folder] {
		return nil
	}
	if err := w.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	w.folders[folder] = true
	return os.Mkdir(folder, 0o700)
}

func (w *writer) note(name, sum string) error {
	_, err := fmt.Fprintf(w.sums, "%s  %s\n", sum, name)
	return err
}
