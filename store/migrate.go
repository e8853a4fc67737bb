package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
)

// What is wrong with the schema of a database that cannot be opened.
var (
	ErrSchemaOld = errors.New("the database schema is older than this program: run `postroom migrate`")
	ErrSchemaNew = errors.New("newer than the program's: use the newer program")
)

// Migrate brings the schema to this version, under a lock, and returns how many
// steps it took. A schema newer than this program is refused.
func Migrate(ctx context.Context, cfg Config) (steps int, err error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := s.migrator()
	if err != nil {
		return 0, err
	}
	if err := refuseNewer(ctx, p); err != nil {
		return 0, err
	}
	done, err := p.Up(ctx)
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", err)
	}
	return len(done), nil
}

func (s *Store) migrator() (*goose.Provider, error) {
	name, files, opts, err := s.engine.Migrations()
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	p, err := goose.NewProvider(name, s.write.DB, files, append(opts, goose.WithDisableGlobalRegistry(true))...)
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return p, nil
}

// checkSchema refuses a database whose schema is older or newer than this
// program's.
func (s *Store) checkSchema(ctx context.Context) error {
	p, err := s.migrator()
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, p); err != nil {
		return err
	}
	if _, s.schema, err = p.GetVersions(ctx); err != nil {
		return s.wrap(err, "read the schema version")
	}
	pending, err := p.HasPending(ctx)
	if err != nil {
		return s.wrap(err, "read the schema version")
	}
	if pending {
		return ErrSchemaOld
	}
	return nil
}

func refuseNewer(ctx context.Context, p *goose.Provider) error {
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have > want {
		return fmt.Errorf("the database schema is at version %d and this program's at %d: %w", have, want, ErrSchemaNew)
	}
	return nil
}
