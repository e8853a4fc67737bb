package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// mergePages bounds one step of MergeIndex: about so many pages of the index are
// written anew.
const mergePages = 64

// MergeIndex does one step of freeing the full-text index of words that only
// deleted content had, in one short transaction. It returns how many steps were
// done, 1 or 0: none when there is nothing to free. A word that was taken out
// cannot be found any more; what this removes is the word itself.
func (s *Store) MergeIndex(ctx context.Context) (int, error) {
	begin := s.unmerged.Swap(false) // what is taken out from here on is for the next time
	if !begin && !s.merging.Load() {
		return 0, nil
	}
	more := false
	err := s.inTx(ctx, "merge the index", func(tx *sqlx.Tx) (err error) {
		more, err = s.dialect.mergeIndex(ctx, tx, begin, mergePages)
		return err
	})
	if err != nil {
		if begin {
			s.unmerged.Store(true)
		}
		return 0, err
	}
	s.merging.Store(more)
	if !more {
		return 0, nil
	}
	return 1, nil
}
