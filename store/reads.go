package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// readStatements are the reads that every mail and every request needs:
// prepared, they cost a third.
type readStatements struct {
	mailboxByAddress *sqlx.Stmt
	keyByHash        *sqlx.Stmt
}

func (s *Store) prepareReads(ctx context.Context) error {
	for query, into := range map[string]**sqlx.Stmt{
		mailboxByAddress: &s.reads.mailboxByAddress,
		keyByHash:        &s.reads.keyByHash,
	} {
		st, err := s.read.PreparexContext(ctx, query) //nolint:sqlclosecheck // close does, with the store
		if err != nil {
			return s.wrap(fmt.Errorf("prepare %q: %w", query, err), "open")
		}
		*into = st
	}
	return nil
}

func (r readStatements) close() error {
	var errs []error
	for _, st := range []*sqlx.Stmt{r.mailboxByAddress, r.keyByHash} {
		if st != nil {
			errs = append(errs, st.Close())
		}
	}
	return errors.Join(errs...)
}
