package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/postroom/postroom/store"
)

// Verified is what Verify has read.
type Verified struct {
	Rows     map[string]int64 // by table
	Messages int64            // whose content was read
	Unsummed int64            // of them, without a checksum: stored by older versions
	Damage   int64            // findings
}

// Verify reads everything in an installation, while it runs, and calls report with a
// sentence about each thing that is damaged or missing: pages and indexes of the
// database, rows that refer to what is not there, content that is not what was written,
// blobs. The error is one of reading, not of what was found.
func Verify(ctx context.Context, s *store.Store, blobs store.Blobs, report func(string)) (Verified, error) {
	v := verifier{Verified: Verified{Rows: map[string]int64{}}, blobs: blobs, report: report}
	found, err := s.CheckDatabase(ctx)
	if err != nil {
		return v.Verified, err
	}
	for _, f := range found {
		v.found("%s", f)
	}
	if _, err := s.Export(ctx, 0, func(r store.Row) error { return v.row(ctx, &r) }); err != nil {
		if ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) {
			return v.Verified, err
		}
		v.found("the database cannot be read to its end: %v", err)
	}
	return v.Verified, nil
}

type verifier struct {
	Verified
	blobs  store.Blobs
	report func(string)
}

func (v *verifier) found(format string, args ...any) {
	v.Damage++
	v.report(fmt.Sprintf(format, args...))
}

// jsonColumns are the columns that hold JSON, by table.
var jsonColumns = map[string][]string{
	"messages": {"addresses", "refs"}, "contents": {"body", "extracted", "auth", "attachments"}, "inboxes": {"metadata"},
	"threads": {"participants"}, "drafts": {"addresses", "refs"}, "draft_contents": {"headers", "attachments"}, "events": {"data"},
	"emails": {"tags", "metadata"},
}

func (v *verifier) row(ctx context.Context, r *store.Row) error {
	v.Rows[r.Table]++
	for _, column := range jsonColumns[r.Table] {
		if text, ok := r.Value(column).(string); ok && text != "" && !json.Valid([]byte(text)) {
			v.found("%s %s: the column %s is damaged", r.Table, name(r), column)
		}
	}
	switch r.Table {
	case "contents":
		return v.content(ctx, r)
	case "draft_contents":
		if key, ok := r.Value("blob_key").(string); ok {
			_, err := v.blob(ctx, "draft "+name(r), key)
			return err
		}
	}
	return nil
}

// name identifies a row to a person.
func name(r *store.Row) string {
	for _, column := range []string{"export_id", "id", "seq", "message_seq", "draft_seq", "name"} {
		if value := r.Value(column); value != nil {
			return fmt.Sprint(value)
		}
	}
	return "without a key"
}

// summed are the columns with a checksum, in the order of store.IsDerived.
var summed = []string{
	"body", "snippet", "extracted", "auth", "attachments",
	"export_from", "export_addresses", "export_subject", "export_header", "export_refs",
}

// content compares the content of a message with its checksum and its size.
func (v *verifier) content(ctx context.Context, r *store.Row) error {
	v.Messages++
	id := "message " + name(r)
	raw, _ := r.Value("raw").([]byte)
	read := store.NewSum()
	_, _ = read.Write(raw) // never fails
	if key, ok := r.Value("blob_key").(string); ok {
		var err error
		if read, err = v.blob(ctx, id, key); read == nil {
			return err
		}
	}
	if size, ok := r.Value("export_size").(int64); ok && size != read.Size {
		v.found("%s: the raw message has %d bytes, want %d", id, read.Size, size)
	}
	sum, ok := r.Value("checksum").(int64)
	if !ok {
		v.Unsummed++
		return nil
	}
	if !read.IsRaw(sum) {
		v.found("%s: the raw message is not what was stored", id)
	}
	columns := make([]any, len(summed))
	for i, column := range summed {
		columns[i] = r.Value(column)
	}
	if !store.IsDerived(sum, columns...) {
		v.found("%s: its header, text, codes or attachments are not what was stored", id)
	}
	return nil
}

// blob reads a blob. It returns nil if the blob cannot be read.
func (v *verifier) blob(ctx context.Context, of, key string) (*store.Sum, error) {
	r, err := v.blobs.Open(ctx, key)
	if err == nil {
		sum := store.NewSum()
		_, err = io.Copy(sum, r)
		if err = errors.Join(err, r.Close()); err == nil {
			return sum, nil
		}
	}
	if ctx.Err() != nil {
		return nil, err
	}
	v.found("%s: its blob %s cannot be read: %s", of, key, strings.ReplaceAll(err.Error(), "\n", " "))
	return nil, nil //nolint:nilnil // the finding is the result
}
