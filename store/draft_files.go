package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// DraftFile is an attachment of a new draft.
type DraftFile struct {
	Size int64
	Open func() (io.ReadCloser, error)
}

// draftFiles are the attachments of a new draft, one after the other: small ones
// together in the row, large ones in a blob.
type draftFiles struct {
	row  []byte
	blob *string
}

// keepDraftFiles stores the attachments of a draft that is about to be created.
// A blob is durable when it returns; one that no row comes to name is swept away
// later.
func (s *Store) keepDraftFiles(ctx context.Context, files []DraftFile) (_ draftFiles, err error) {
	const what = "keep the attachments of a draft"
	all := &fileSequence{files: files}
	defer func() { err = errors.Join(err, all.Close()) }()
	var total int64
	for _, f := range files {
		total += f.Size
	}
	if total > RawInRow {
		key, err := s.blobs.Put(ctx, all, total)
		return draftFiles{blob: &key}, errIn(what, err)
	}
	row := make([]byte, total)
	_, err = io.ReadFull(all, row)
	return draftFiles{row: row}, errIn(what, err)
}

// fileSequence reads files one after the other, and holds one open at a time.
type fileSequence struct {
	files []DraftFile // that are still to be opened
	open  io.ReadCloser
}

// Read implements io.Reader.
func (q *fileSequence) Read(p []byte) (int, error) {
	for {
		if q.open == nil {
			if len(q.files) == 0 {
				return 0, io.EOF
			}
			var err error
			if q.open, err = q.files[0].Open(); err != nil {
				q.open = nil
				return 0, err
			}
			q.files = q.files[1:]
		}
		n, err := q.open.Read(p)
		if errors.Is(err, io.EOF) {
			err = q.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close closes the file that is open.
func (q *fileSequence) Close() error {
	if q.open == nil {
		return nil
	}
	open := q.open
	q.open = nil
	return open.Close()
}

// OpenDraftFile opens the attachment of a draft that has the number i. ErrNotFound
// when the content is deleted. The caller closes it.
func (s *Store) OpenDraftFile(ctx context.Context, d Draft, i int) (io.ReadCloser, error) {
	const what = "attachment of a draft"
	if d.Content == nil {
		return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	all, err := s.openDraftFiles(ctx, d)
	if err != nil {
		return nil, errIn(what, err)
	}
	var before int64
	for _, at := range d.Content.Attachments.V[:i] {
		before += at.Size
	}
	if _, err := all.Seek(before, io.SeekStart); err != nil {
		return nil, errors.Join(errIn(what, err), all.Close())
	}
	return limitedFile{io.LimitReader(all, d.Content.Attachments.V[i].Size), all}, nil
}

// openDraftFiles opens all attachments of a draft as one.
func (s *Store) openDraftFiles(ctx context.Context, d Draft) (io.ReadSeekCloser, error) {
	if key := d.Content.BlobKey; key != nil {
		return s.blobs.Open(ctx, *key)
	}
	var all []byte
	err := s.read.GetContext(ctx, &all, `SELECT files FROM draft_contents WHERE draft_seq = $1`, d.Seq)
	return nopCloser{bytes.NewReader(all)}, s.wrap(err, "files")
}

type limitedFile struct {
	io.Reader
	io.Closer
}
