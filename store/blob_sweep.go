package store

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

const (
	// blobGrace is how long an unnamed blob is kept. A row may name a blob for the
	// first half of it (checkBlobs), so that no row names a blob that was removed.
	blobGrace = 24 * time.Hour
	// blobPage is how many blobs are looked up at a time.
	blobPage = 500
)

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SweepBlobs removes the blobs, older than blobGrace, that no row names: what a
// crash between blob and row leaves behind. Both the time in the key and the
// time that the storage knows must be that old, since the two may come from
// different clocks. It returns how many went.
func (s *Store) SweepBlobs(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	n := 0
	var keys []string
	flush := func() error {
		gone, err := s.removeUnnamed(ctx, keys)
		n, keys = n+gone, keys[:0]
		return err
	}
	before := s.now().Add(-blobGrace)
	err := s.blobs.Each(ctx, before, func(key string) error {
		if at, ok := blobTime(key); ok && !at.Before(before) {
			return nil
		}
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

// errStaleBlob means that a blob waited so long for its row that it may be
// removed. The caller can write it again.
var errStaleBlob = fmt.Errorf("%w: the content was written too long ago", ErrUnavailable)

// checkBlobs refuses blobs that are too old for a row to name them for the first
// time. It runs in the transaction that writes the rows.
func checkBlobs(now time.Time, keys ...*string) error {
	for _, key := range keys {
		if key == nil {
			continue
		}
		if at, ok := blobTime(*key); ok && now.Sub(at) > blobGrace/2 {
			return fmt.Errorf("blob %s: %w", *key, errStaleBlob)
		}
	}
	return nil
}
