package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// put writes a row of its own.
func put(ctx context.Context, tx *sqlx.Tx, name string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO settings (name, value) VALUES ($1, '')`, name)
	return err
}

func isPut(t *testing.T, s *store.Store, name string) bool {
	t.Helper()
	var n int
	err := s.Write(t.Context(), func(tx *sqlx.Tx) error {
		return tx.GetContext(t.Context(), &n, `SELECT count(*) FROM settings WHERE name = $1`, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// busy occupies the writers until the function that it returns is called, so that all
// that is written meanwhile shares the next transaction.
func busy(t *testing.T, s *store.Store) (release func()) {
	t.Helper()
	writers := 1
	if s.Engine() == "postgresql" {
		writers = store.PostgresWriters
	}
	began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, writers)
	for range writers {
		go func() {
			ended <- s.Write(t.Context(), func(*sqlx.Tx) error {
				began <- struct{}{}
				<-end
				return nil
			})
		}()
		<-began
	}
	return func() {
		close(end)
		for range writers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

// Functions that share a transaction fail alone, in all the ways in which they can.
func TestOnlyTheWriteThatFailsIsUndone(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		errOwn := errors.New("own")
		fails := map[string]func(ctx context.Context, tx *sqlx.Tx, cancel func()) error{
			"its own error":       func(context.Context, *sqlx.Tx, func()) error { return errOwn },
			"a refused statement": func(ctx context.Context, tx *sqlx.Tx, _ func()) error { return put(ctx, tx, "twice") },
			"an interrupted statement": func(ctx context.Context, tx *sqlx.Tx, cancel func()) error {
				time.AfterFunc(20*time.Millisecond, cancel)
				const long = `INSERT INTO settings (name, value)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'long ' || i, '' FROM n`
				_, err := tx.ExecContext(ctx, long)
				return err
			},
			"a panic": func(context.Context, *sqlx.Tx, func()) error { panic("of the function") },
		}
		for name, fail := range fails {
			t.Run(name, func(t *testing.T) {
				release := busy(t, s)
				var callers sync.WaitGroup
				errs := make([]error, 16)
				for i := range errs {
					callers.Go(func() {
						defer func() {
							if p := recover(); p != nil {
								errs[i] = fmt.Errorf("panic: %v", p)
							}
						}()
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						errs[i] = s.Write(ctx, func(tx *sqlx.Tx) error {
							if err := put(ctx, tx, fmt.Sprint(name, i)); err != nil || i%8 != 5 {
								return err
							}
							if name == "a refused statement" {
								if err := put(ctx, tx, "twice"); err != nil {
									return err
								}
							}
							return fail(ctx, tx, cancel)
						})
					})
				}
				waittest.Until(t, "they wait", func() bool { return s.WaitingWrites() >= len(errs) })
				release()
				callers.Wait()
				for i, err := range errs {
					if failed := i%8 == 5; failed != (err != nil) || failed == isPut(t, s, fmt.Sprint(name, i)) {
						t.Errorf("write %d: got %v, stored: %v", i, err, isPut(t, s, fmt.Sprint(name, i)))
					}
				}
			})
		}
	})
}

func TestWriteThatWaitsCanBeLeft(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		release := busy(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := s.Write(ctx, func(tx *sqlx.Tx) error { return put(ctx, tx, "left") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
		release()
		if isPut(t, s, "left") {
			t.Error("it was written")
		}
	})
}

func TestCloseWritesWhatWaits(t *testing.T) {
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		release := busy(t, s)
		waits, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			waits <- s.Write(t.Context(), func(tx *sqlx.Tx) error { return put(t.Context(), tx, "waits") })
		}()
		waittest.Until(t, "it waits", func() bool { return s.WaitingWrites() >= 1 })
		go func() { closed <- s.Close() }()
		waittest.Until(t, "the store takes no more", s.Closing)
		if err := s.Write(t.Context(), func(*sqlx.Tx) error { return nil }); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a write after that: got %v, want ErrUnavailable", err)
		}
		release()
		if err := errors.Join(<-waits, <-closed); err != nil {
			t.Fatal(err)
		}
		if !isPut(t, storetest.OpenConfig(t, cfg), "waits") {
			t.Error("what waited is not stored")
		}
	})
}
