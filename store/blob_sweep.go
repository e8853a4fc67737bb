package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// blobGrace is how long a blob may wait for its row.
const blobGrace = time.Hour

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SweepBlobs removes the blobs, older than an hour, that no row names: what a
// crash between blob and row leaves behind. It returns how many went.
func (s *Store) SweepBlobs(ctx context.Context) (int, error) {
	const q = `SELECT count(*) FROM contents WHERE blob_key = $1`
	n := 0
	err := s.blobs.each(s.now().Add(-blobGrace), func(key string, temporary bool) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var rows int
		if !temporary {
			if err := s.read.GetContext(ctx, &rows, q, key); err != nil {
				return s.wrap(err, "look for the row of a blob")
			}
		}
		if rows > 0 {
			return nil
		}
		n++
		return s.blobs.Delete(key)
	})
	if err != nil {
		return n, fmt.Errorf("sweep blobs: %w", err)
	}
	return n, nil
}
