package backup

import (
	"bufio"
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
	"time"

	"github.com/postroom/postroom/store"
)

// errStopped ends a listing early.
var errStopped = errors.New("stopped")

// Restore fills an empty database and an empty storage of blobs, and holds pending
// deliveries. The caller must install the secret first.
func (b *Backup) Restore(ctx context.Context, cfg store.Config, blobs store.Blobs) error {
	to, err := wantNoBlobs(ctx, blobs)
	if err != nil {
		return err
	}
	return store.Import(ctx, cfg, b.Portable, b.rows(ctx, to))
}

// wantNoBlobs returns an error if the blob storage is not empty. Two
// installations with the same storage would delete each other's blobs.
func wantNoBlobs(ctx context.Context, blobs store.Blobs) (store.BlobRestorer, error) {
	to, ok := blobs.(store.BlobRestorer)
	if !ok {
		return nil, fmt.Errorf("%T takes no blobs back", blobs)
	}
	const everything = 100 * 365 * 24 * time.Hour
	err := blobs.Each(ctx, time.Now().Add(everything), func(string) error { return errStopped })
	if errors.Is(err, errStopped) {
		return nil, errors.New("the storage of blobs is not empty")
	}
	return to, err
}

// rows reads the rows of all tables, and restores the blobs that they name.
func (b *Backup) rows(ctx context.Context, blobs store.BlobRestorer) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for _, table := range store.ExportedTables() {
			if b.Rows[table] == 0 {
				continue
			}
			n := int64(0)
			err := b.table(ctx, table, func(r store.Row) error {
				n++
				if err := b.restore(ctx, &r, blobs); err != nil {
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
			if err == nil && n != b.Rows[table] {
				err = fmt.Errorf("the backup is damaged: %s has %d rows, want %d", table, n, b.Rows[table])
			}
			if err != nil {
				yield(store.Row{}, err)
				return
			}
		}
	}
}

// table calls f with each row of a table.
func (b *Backup) table(ctx context.Context, table string, f func(store.Row) error) error {
	file, err := b.root.Open(fileOfTable(table))
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
			values[i], err = columnValue(values[i])
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if err := f(store.Row{Table: table, Names: names, Values: values}); err != nil {
			return err
		}
	}
}

// columnValue returns the value of a column from its JSON form.
func columnValue(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case json.Number:
		return v.Int64()
	case map[string]any:
		if text, ok := v["base64"].(string); ok && len(v) == 1 {
			return base64.StdEncoding.DecodeString(text)
		}
		name, _ := v["file"].(string)
		size, ok := v["size"].(json.Number)
		if ok && len(v) == 2 && strings.HasPrefix(name, mailFolder) {
			n, err := size.Int64()
			return exportedFile{name, n}, err
		}
	}
	return nil, fmt.Errorf("%v is not the value of a column", v)
}

// restore puts the content of a row that has a file of its own in its place.
func (b *Backup) restore(ctx context.Context, r *store.Row, blobs store.BlobRestorer) error {
	key, _ := r.Value("blob_key").(string)
	if key != "" && !store.IsBlobKey(key) {
		return fmt.Errorf("the backup is damaged: %q is not the key of a blob", key)
	}
	if r.Table == "draft_contents" && key != "" {
		return b.restoreBlob(ctx, blobs, key, blobFolder+key)
	}
	for i, v := range r.Values {
		file, ok := v.(exportedFile)
		if !ok {
			continue
		}
		if key != "" {
			r.Values[i] = nil
			return b.restoreBlob(ctx, blobs, key, file.File)
		}
		raw, err := b.root.ReadFile(filepath.FromSlash(file.File))
		if err != nil {
			return err
		}
		r.Values[i] = raw
	}
	return nil
}

// restoreBlob restores the blob of a file. One that is missing in the backup is missing
// afterwards too.
func (b *Backup) restoreBlob(ctx context.Context, to store.BlobRestorer, key, name string) (err error) {
	f, err := b.root.Open(filepath.FromSlash(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return to.Restore(ctx, key, f, info.Size())
}
