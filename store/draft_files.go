package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// draftFiles are the attachments of a new draft, one after the other: small ones
// together in the row, large ones in a blob.
type draftFiles struct {
	row  []byte
	blob *string
}

// keepDraftFiles stores the attachments of a draft that is about to be created.
// A blob is on the disk when it returns; one that no row comes to name is swept
// away later.
func (s *Store) keepDraftFiles(ctx context.Context, files [][]byte) (draftFiles, error) {
	total := int64(0)
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		total += int64(len(f))
		readers[i] = bytes.NewReader(f)
	}
	if total <= RawInRow {
		return draftFiles{row: bytes.Join(files, nil)}, nil
	}
	key, err := s.blobs.Put(ctx, io.MultiReader(readers...), total)
	if err != nil {
		return draftFiles{}, fmt.Errorf("keep the attachments of a draft: %w", err)
	}
	return draftFiles{blob: &key}, nil
}

// DraftFiles returns the bytes of each attachment of a draft. ErrNotFound when
// the content is deleted.
func (s *Store) DraftFiles(ctx context.Context, d Draft) ([][]byte, error) {
	const what = "attachments of a draft"
	if d.Content == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	if len(d.Content.Attachments.V) == 0 {
		return nil, nil
	}
	all, err := s.draftBytes(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	files := make([][]byte, len(d.Content.Attachments.V))
	for i, at := range d.Content.Attachments.V {
		if int64(len(all)) < at.Size {
			return nil, fmt.Errorf("%s: %w", what, io.ErrUnexpectedEOF)
		}
		files[i], all = all[:at.Size:at.Size], all[at.Size:]
	}
	return files, nil
}

func (s *Store) draftBytes(ctx context.Context, d Draft) ([]byte, error) {
	if key := d.Content.BlobKey; key != nil {
		f, err := s.blobs.Open(ctx, *key)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		var total int64
		for _, at := range d.Content.Attachments.V {
			total += at.Size
		}
		all := make([]byte, total)
		_, err = io.ReadFull(f, all)
		return all, err
	}
	var all []byte
	err := s.read.GetContext(ctx, &all, `SELECT files FROM draft_contents WHERE draft_seq = $1`, d.Seq)
	return all, s.wrap(err, "files")
}
