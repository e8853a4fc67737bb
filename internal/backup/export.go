package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/postroom/postroom/store"
)

// Names of the files in an export. Each message is a file of its own, as it was
// received or sent, which mail programs can read. The tables are JSON lines: first the
// names of the columns, then a line for each row.
const (
	exportFile  = "export.json"
	tableFolder = "tables/"
	mailFolder  = "mail/"
	// sentFolder holds messages that belong to no inbox.
	sentFolder = "sent"
)

// Export describes an export: the data of an installation, or of one account, in a form
// that any database can take.
type Export struct {
	Format   int    `json:"format"`
	Postroom string `json:"postroom"`          // version of Postroom that wrote it
	Account  string `json:"account,omitempty"` // the only account, if one was chosen
	store.Portable
	Rows     map[string]int64 `json:"rows"`     // by table
	Messages int64            `json:"messages"` // files
	// Missing lists the messages whose content is missing or has the wrong size. The
	// export contains everything else.
	Missing     []string `json:"missing"`
	Fingerprint string   `json:"secret_fingerprint"`
	HasSecret   bool     `json:"has_secret"`
}

// WriteExport exports an installation, or one account of it, while it runs. It returns
// an error if Dir exists. If it fails, it removes all files.
func WriteExport(ctx context.Context, cfg Config, account string) (x Export, err error) {
	var seq int64
	if account != "" {
		a, err := cfg.Store.Account(ctx, account)
		if err != nil {
			return x, fmt.Errorf("account %q: %w", account, err)
		}
		seq = a.Seq
	}
	err = cfg.inNewFolder(ctx, func(ctx context.Context, w *writer) error {
		x, err = w.export(ctx, account, seq)
		return err
	}, func(dir string) error {
		x, err := OpenExport(ctx, dir)
		if err != nil {
			return err
		}
		return x.Close()
	})
	return x, err
}

func (w *writer) export(ctx context.Context, account string, seq int64) (Export, error) {
	x := Export{
		Format: format, Postroom: w.Version, Account: account, Rows: map[string]int64{}, Missing: []string{},
		Fingerprint: w.Fingerprint, HasSecret: w.Secret != "",
	}
	var to *tableFile
	var err error
	x.Portable, err = w.Store.Export(ctx, seq, func(r store.Row) error {
		if to == nil || to.table != r.Table {
			if err := to.close(); err != nil {
				return err
			}
			if to, err = w.openTable(r); err != nil {
				return err
			}
		}
		x.Rows[r.Table]++
		if err := w.files(ctx, &x, &r); err != nil {
			return err
		}
		return to.row(r.Values[:len(to.names)])
	})
	if err = errors.Join(err, to.close()); err != nil {
		return x, err
	}
	return x, w.describe(exportFile, x)
}

// exportedFile stands for content that is in a file of its own.
type exportedFile struct {
	File string `json:"file"`
}

// files writes the content that a row has in a file of its own, and puts the name in
// its place.
func (w *writer) files(ctx context.Context, x *Export, r *store.Row) error {
	key, _ := r.Value("blob_key").(string)
	switch r.Table {
	case "contents":
		return w.mail(ctx, x, r, key)
	case "draft_contents":
		if key == "" {
			return nil
		}
		err := w.copyBlob(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			x.Missing = append(x.Missing, "blob "+key)
			return nil
		}
		return err
	}
	return nil
}

// mail writes the raw message of a row of contents.
func (w *writer) mail(ctx context.Context, x *Export, r *store.Row, key string) error {
	id, _ := r.Value("export_id").(string)
	size, _ := r.Value("export_size").(int64)
	inbox, _ := r.Value("export_inbox").(string)
	if inbox == "" {
		inbox = sentFolder
	}
	raw, _ := r.Value("raw").([]byte)
	if raw == nil && key == "" {
		return nil
	}
	name := mailFolder + folderName(inbox) + "/" + folderName(id) + ".eml"
	from := io.Reader(bytes.NewReader(raw))
	if key != "" {
		blob, err := w.Blobs.Open(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			x.Missing = append(x.Missing, id)
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = blob.Close() }() // it was only read
		from = blob
	}
	read := store.NewSum()
	if err := w.create(name, io.TeeReader(from, read)); err != nil {
		return err
	}
	x.Messages++
	if read.Size != size {
		x.Missing = append(x.Missing, id)
	}
	for i, column := range r.Names {
		if column == "raw" {
			r.Values[i] = exportedFile{name}
		}
	}
	return nil
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

func fileOfTable(table string) string { return tableFolder + table + ".jsonl" }

// exportedBytes is the JSON form of bytes.
type exportedBytes struct {
	Base64 string `json:"base64"`
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

// ExportReader is an open export. Close it after use.
type ExportReader struct {
	Export
	files *Backup
}

// OpenExport opens the export in a directory, and verifies the checksums of its files.
func OpenExport(ctx context.Context, dir string) (*ExportReader, error) {
	x := &ExportReader{}
	root, err := openFolder(dir, "an", "export", exportFile, &x.Export, &x.Format)
	if err != nil {
		return nil, err
	}
	x.files = &Backup{root: root}
	if err := x.check(ctx); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return x, nil
}

// Close closes the export.
func (x *ExportReader) Close() error { return x.files.Close() }

// Secret returns the installation secret, or os.ErrNotExist if the export does not contain
// it.
func (x *ExportReader) Secret() (string, error) {
	x.files.HasSecret = x.HasSecret
	return x.files.Secret()
}

func (x *ExportReader) check(ctx context.Context) error {
	seen := map[string]bool{}
	var messages int64
	err := x.files.checkFiles(ctx, "export", func(name string) {
		if strings.HasPrefix(name, mailFolder) {
			messages++
		} else {
			seen[name] = true
		}
	})
	if err != nil {
		return err
	}
	if messages != x.Messages {
		return fmt.Errorf("the export is not whole: %d of %d messages are listed", messages, x.Messages)
	}
	for table, n := range x.Rows {
		if name := fileOfTable(table); n > 0 && !seen[name] {
			return fmt.Errorf("the export is not whole: %s is not listed", name)
		}
	}
	return nil
}

// Import fills an empty database and an empty storage of blobs, and holds pending
// deliveries. The caller must install the secret first.
func (x *ExportReader) Import(ctx context.Context, cfg store.Config, blobs store.Blobs) error {
	to, err := wantNoBlobs(ctx, blobs)
	if err != nil {
		return err
	}
	return store.Import(ctx, cfg, x.Portable, x.rows(ctx, to))
}

// rows reads the rows of all tables, and restores the blobs that they name.
func (x *ExportReader) rows(ctx context.Context, blobs store.BlobRestorer) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for _, table := range store.ExportedTables() {
			if x.Rows[table] == 0 {
				continue
			}
			n := int64(0)
			err := x.table(ctx, table, func(r store.Row) error {
				n++
				if err := x.restore(ctx, &r, blobs); err != nil {
					return err
				}
				if !yield(r, nil) {
					return errStopped
				}
				return nil
			})
			if errors.Is(err, errStopped) {
				return
			}
			if err == nil && n != x.Rows[table] {
				err = fmt.Errorf("the export is damaged: %s has %d rows, want %d", table, n, x.Rows[table])
			}
			if err != nil {
				yield(store.Row{}, err)
				return
			}
		}
	}
}

var errStopped = errors.New("stopped")

func (x *ExportReader) table(ctx context.Context, table string, f func(store.Row) error) (err error) {
	file, err := x.files.root.Open(fileOfTable(table))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	lines := json.NewDecoder(bufio.NewReader(file))
	lines.UseNumber()
	var names []string
	if err := lines.Decode(&names); err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var values []any
		err := lines.Decode(&values)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(values) != len(names) {
			err = fmt.Errorf("a row has %d values, want %d", len(values), len(names))
		}
		for i := 0; i < len(values) && err == nil; i++ {
			values[i], err = x.value(values[i])
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if err := f(store.Row{Table: table, Names: names, Values: values}); err != nil {
			return err
		}
	}
}

// value returns the value of a column from its JSON form.
func (x *ExportReader) value(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		return v.Int64()
	case map[string]any:
		if text, ok := v["base64"].(string); ok && len(v) == 1 {
			return base64.StdEncoding.DecodeString(text)
		}
		if name, ok := v["file"].(string); ok && len(v) == 1 && strings.HasPrefix(name, mailFolder) {
			return exportedFile{name}, nil
		}
	}
	return nil, fmt.Errorf("%v is not the value of a column", v)
}

// restore puts the content of a row that has a file of its own in its place.
func (x *ExportReader) restore(ctx context.Context, r *store.Row, blobs store.BlobRestorer) error {
	key, _ := r.Value("blob_key").(string)
	if key != "" && !store.IsBlobKey(key) {
		return fmt.Errorf("the export is damaged: %q is not the key of a blob", key)
	}
	if r.Table == "draft_contents" && key != "" {
		return x.restoreBlob(ctx, blobs, key, blobFolder+key)
	}
	for i, v := range r.Values {
		file, ok := v.(exportedFile)
		if !ok {
			continue
		}
		if key != "" {
			r.Values[i] = nil
			return x.restoreBlob(ctx, blobs, key, file.File)
		}
		raw, err := x.files.root.ReadFile(filepath.FromSlash(file.File))
		if err != nil {
			return err
		}
		r.Values[i] = raw
	}
	return nil
}

// restoreBlob restores the blob of a file. One that is missing in the export is missing
// afterwards too.
func (x *ExportReader) restoreBlob(ctx context.Context, blobs store.BlobRestorer, key, name string) error {
	f, err := x.files.root.Open(filepath.FromSlash(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return restoreBlob(ctx, blobs, key, f)
}
