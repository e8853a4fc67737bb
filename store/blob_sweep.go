package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// blobGrace is how long a blob may wait for its row.
	blobGrace = time.Hour
	// blobPage is how many blobs are looked up at a time.
	blobPage = 500
)

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SweepBlobs removes the blobs, older than an hour, that no row names: what a
// crash between blob and row leaves behind. It returns how many went.
func (s *Store) SweepBlobs(ctx context.Context) (int, error) {
	n := 0
	var keys []string
	flush := func() error {
		gone, err := s.removeUnnamed(ctx, keys)
		n, keys = n+gone, keys[:0]
		return err
	}
	err := s.blobs.Each(ctx, s.now().Add(-blobGrace), func(key string) error {
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
