package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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

// Write creates a backup of a running installation, or of one account of it, and checks
// it. It returns an error if Dir exists. If it fails, it removes all files.
func Write(ctx context.Context, cfg Config, account string) (m Manifest, err error) {
	m = Manifest{
		Format: format, Postroom: cfg.Version, Account: account, Rows: map[string]int64{}, Missing: []string{},
		Fingerprint: cfg.Fingerprint, HasSecret: cfg.Secret != "",
	}
	var seq int64
	if account != "" {
		a, err := cfg.Store.Account(ctx, account)
		if err != nil {
			return m, fmt.Errorf("account %q: %w", account, err)
		}
		seq = a.Seq
	}
	err = cfg.inNewFolder(ctx, func(ctx context.Context, w *writer) error {
		return w.write(ctx, &m, seq)
	})
	return m, err
}

// inNewFolder calls write to fill a temporary folder, while no blob is deleted, checks
// it, and gives the folder the name Dir. If anything fails, it removes the folder.
func (cfg Config) inNewFolder(ctx context.Context, write func(context.Context, *writer) error) (err error) {
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
	w := &writer{Config: cfg, dir: part}
	err = w.fill(ctx, write)
	if err = errors.Join(err, free()); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	written, err := Open(ctx, part)
	if err != nil {
		return err
	}
	if err := written.Close(); err != nil {
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
	dir  string
	sums *os.File
}

// fill calls write, and returns when all files are on the disk.
func (w *writer) fill(ctx context.Context, write func(context.Context, *writer) error) (err error) {
	if w.sums, err = os.OpenFile(filepath.Join(w.dir, sumsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if err = errors.Join(write(ctx, w), w.sums.Close()); err != nil {
		return err
	}
	return disk.SyncTree(w.dir)
}

// write writes the tables and small messages as of one moment, and then what they name in
// the storage of blobs: that may take hours, and PostgreSQL cannot clean up while a
// transaction is open.
func (w *writer) write(ctx context.Context, m *Manifest, account int64) (err error) {
	var to *tableFile
	m.Portable, err = w.Store.Export(ctx, account, func(r store.Row) error {
		if to == nil || to.table != r.Table {
			if err := to.close(); err != nil {
				return err
			}
			if to, err = w.openTable(r); err != nil {
				return err
			}
		}
		m.Rows[r.Table]++
		if r.Table == "contents" {
			if err := w.mail(m, &r); err != nil {
				return err
			}
		}
		return to.row(r.Values[:len(to.names)])
	})
	if err = errors.Join(err, to.close()); err == nil {
		err = w.blobs(ctx, m)
	}
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if _, err = w.create(manifestFile, bytes.NewReader(append(text, '\n'))); err == nil && w.Secret != "" {
		_, err = w.create(secretFile, strings.NewReader(w.Secret+"\n"))
	}
	return err
}

// mail gives the raw message of a row of contents a file of its own, and puts its name in
// the place of the message. One in the storage of blobs is copied later.
func (w *writer) mail(m *Manifest, r *store.Row) error {
	id, _ := r.Value("export_id").(string)
	inbox, _ := r.Value("export_inbox").(string)
	if inbox == "" {
		inbox = sentFolder
	}
	file := exportedFile{File: mailFolder + folderName(inbox) + "/" + folderName(id) + ".eml"}
	file.Size, _ = r.Value("export_size").(int64)
	raw, _ := r.Value("raw").([]byte)
	switch key, _ := r.Value("blob_key").(string); {
	case key == "" && raw == nil:
		return nil
	case key == "":
		size, err := w.create(file.File, bytes.NewReader(raw))
		if err != nil {
			return err
		}
		m.count(file, size)
	}
	r.Values[slices.Index(r.Names, "raw")] = file
	return nil
}

// count counts a message whose file has size bytes.
func (m *Manifest) count(file exportedFile, size int64) {
	m.Messages++
	if size != file.Size {
		m.Missing = append(m.Missing, file.id())
	}
}

// blobs copies the blobs that the tables in the backup name.
func (w *writer) blobs(ctx context.Context, m *Manifest) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	b := &Backup{Manifest: *m, root: root}
	defer func() { _ = b.Close() }() // it was only read
	for _, table := range []string{"contents", "draft_contents"} {
		if m.Rows[table] == 0 {
			continue
		}
		err := b.table(ctx, table, func(r store.Row) error {
			key, _ := r.Value("blob_key").(string)
			if key == "" {
				return nil
			}
			file, isMail := r.Value("raw").(exportedFile)
			if !isMail {
				file = exportedFile{File: blobFolder + key}
			}
			size, err := w.copyBlob(ctx, key, file.File)
			switch {
			case errors.Is(err, fs.ErrExist) && !isMail: // of another draft too
				return nil
			case errors.Is(err, store.ErrNotFound):
				m.Missing = append(m.Missing, file.id())
				return nil
			case err == nil && isMail:
				m.count(file, size)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// id is the message or the blob that the file is named after.
func (f exportedFile) id() string { return strings.TrimSuffix(path.Base(f.File), ".eml") }

func (w *writer) copyBlob(ctx context.Context, key, name string) (size int64, err error) {
	if !store.IsBlobKey(key) {
		return 0, fmt.Errorf("a row names the blob %q, which is none", key)
	}
	r, err := w.Blobs.Open(ctx, key)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return w.create(name, r)
}

// folderName makes a file name of an address or an id.
func folderName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("@._+-", r):
			return r
		default:
			return '_'
		}
	}, strings.TrimLeft(s, "."))
}

// tableFile is a file of a table that is being written.
type tableFile struct {
	*newFile
	table string
	names []string
	out   *bufio.Writer
}

func (w *writer) openTable(r store.Row) (*tableFile, error) {
	f, err := w.open(fileOfTable(r.Table))
	if err != nil {
		return nil, err
	}
	t := &tableFile{newFile: f, table: r.Table, out: bufio.NewWriter(f)}
	var names []any
	for _, name := range r.Names {
		if !strings.HasPrefix(name, "export_") {
			t.names, names = append(t.names, name), append(names, name)
		}
	}
	return t, t.row(names)
}

func (t *tableFile) row(values []any) error {
	line := make([]any, len(values))
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			v = exportedBytes{base64.StdEncoding.EncodeToString(b)}
		}
		line[i] = v
	}
	return json.NewEncoder(t.out).Encode(line)
}

func (t *tableFile) close() error {
	if t == nil {
		return nil
	}
	return t.newFile.close(t.out.Flush())
}

// create writes a file, records its checksum and returns its size.
func (w *writer) create(name string, r io.Reader) (size int64, err error) {
	f, err := w.open(name)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(f, r)
	return size, f.close(err)
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
	to := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	return &newFile{io.MultiWriter(f, sum), w, name, f, sum}, nil
}

// close ends the file and, unless err is not nil, records its checksum.
func (f *newFile) close(err error) error {
	if err = errors.Join(err, f.file.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f.w.sums, "%x  %s\n", f.sum.Sum(nil), f.name)
	return err
}
