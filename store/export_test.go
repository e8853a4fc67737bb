package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// Pragma reads a setting of the connection that writes.
func Pragma(ctx context.Context, s *Store, name string) (string, error) {
	var v string
	err := s.write.GetContext(ctx, &v, "PRAGMA "+name)
	return v, err
}

// MaxAddresses is how many addresses are counted each by itself.
const MaxAddresses = maxAddresses

// SweepRates forgets the windows that have ended, and says how many are left.
func (s *Store) SweepRates(ctx context.Context) (int, error) {
	if err := s.rates.sweep(ctx, s.now()); err != nil {
		return 0, err
	}
	if m, ok := s.rates.(*memoryRates); ok {
		n := 0
		for _, windows := range m.kinds {
			n += len(windows)
		}
		return n, nil
	}
	var n int
	err := s.read.GetContext(ctx, &n, `SELECT count(*) FROM rate_limits`)
	return n, err
}

// Unindex takes messages out of the full-text index, as retention does.
func (s *Store) Unindex(ctx context.Context, seqs ...int64) error {
	return s.inTx(ctx, "unindex", func(tx *sqlx.Tx) error { return s.unindex(ctx, tx, seqs) })
}

// Narrow makes the bounds of a page of a list so small that a test comes to
// them.
func (s *Store) Narrow(listScan, searchLook, searchRead, searchBuckets int, bucketSize int64) {
	s.bounds = bounds{listScan, searchLook, searchRead, s.bounds.searchReadBytes, searchBuckets, bucketSize}
}

// NarrowBytes bounds how many bytes of mail a page of a search reads.
func (s *Store) NarrowBytes(n int) { s.bounds.searchReadBytes = n }
