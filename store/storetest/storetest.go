// Package storetest provides tests with a real, empty store of their own: an
// SQLite file or a PostgreSQL database, and a blob folder, all removed when the
// test ends. There is no mock store: tests see what production does.
//
// Run is the usual entry point: it runs one test on the engines that Engines
// names. The factories create rows for which a test sets only the fields that
// matter.
package storetest

import (
	"bytes"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
)

// Engine is one of the databases that a store runs on.
type Engine string

// The engines; the names are those of Store.Engine.
const (
	SQLite     Engine = "sqlite"
	PostgreSQL Engine = "postgresql"
)

// Engines are the engines that a test runs on. All SQL is in package store, so
// its tests, and those of the packages below it, run on both. Any other test
// runs on one, which its name determines. POSTROOM_TEST_ENGINES=all makes every
// test that calls Run run on both. POSTROOM_TEST_ENGINE names one engine for all
// tests: a run with each shows everything on both.
func Engines(t testing.TB) []Engine {
	t.Helper()
	if both := Both(); len(both) == 1 || os.Getenv("POSTROOM_TEST_ENGINES") == "all" || testsStore() {
		return both
	}
	name, _, _ := strings.Cut(t.Name(), "/")
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return []Engine{[...]Engine{SQLite, PostgreSQL}[hash.Sum32()%2]}
}

// Both are the engines of a test that compares them: both, or the one in
// POSTROOM_TEST_ENGINE.
func Both() []Engine {
	if one := os.Getenv("POSTROOM_TEST_ENGINE"); one != "" {
		return []Engine{Engine(one)}
	}
	return []Engine{SQLite, PostgreSQL}
}

// testsStore reports whether this process tests package store or a package
// below it.
func testsStore() bool {
	const pkg = "github.com/postroom/postroom/store"
	info, ok := debug.ReadBuildInfo()
	return ok && (info.Path == pkg+".test" || strings.HasPrefix(info.Path, pkg+"/"))
}

// Option changes how a store is opened.
type Option func(*settings)

type settings struct {
	store.Config
	blobs string // folder
}

// WithNow makes now the store's clock, instead of time.Now.
func WithNow(now func() time.Time) Option { return func(s *settings) { s.Now = now } }

// WithConfig lets edit change how the store is opened.
func WithConfig(edit func(*store.Config)) Option { return func(s *settings) { edit(&s.Config) } }

// WithLog gives the store a log, instead of the test's own output.
func WithLog(log *slog.Logger) Option { return func(s *settings) { s.Log = log } }

// WithBlobs makes dir the blob folder, for tests that look into it.
func WithBlobs(dir string) Option { return func(s *settings) { s.blobs = dir } }

// WithStorage keeps blobs elsewhere than in a folder. It is closed when the test
// ends.
func WithStorage(b store.Blobs) Option { return func(s *settings) { s.Blobs = b } }

// Run runs test once on each of its Engines, as parallel subtests named after
// them.
func Run(t *testing.T, test func(t *testing.T, s *store.Store), opts ...Option) {
	t.Helper()
	RunConfig(t, func(t *testing.T, cfg store.Config) { test(t, OpenConfig(t, cfg)) }, opts...)
}

// RunConfig is Run for tests that open the store themselves, or more than once.
func RunConfig(t *testing.T, test func(t *testing.T, cfg store.Config), opts ...Option) {
	t.Helper()
	run(t, Engines(t), test, opts)
}

// RunNodes is RunConfig for tests of several nodes. It runs test on both engines,
// because they differ: SQLite belongs to one process.
func RunNodes(t *testing.T, test func(t *testing.T, cfg store.Config), opts ...Option) {
	t.Helper()
	run(t, Both(), test, opts)
}

func run(t *testing.T, engines []Engine, test func(t *testing.T, cfg store.Config), opts []Option) {
	t.Helper()
	for _, e := range engines {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, Config(t, e, opts...))
		})
	}
}

// Open opens an empty store on e. It is closed when the test ends.
func Open(t testing.TB, e Engine, opts ...Option) *store.Store {
	t.Helper()
	return OpenConfig(t, Config(t, e, opts...))
}

// OpenSQLite is Open for tests that need one store and do not care which.
func OpenSQLite(t testing.TB, opts ...Option) *store.Store {
	t.Helper()
	return Open(t, SQLite, opts...)
}

// OpenConfig opens the store that cfg names; a second one on the same cfg is a
// second node. It is closed when the test ends.
func OpenConfig(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// Config makes an empty database with the newest schema, and a blob folder, and
// returns how to open them.
func Config(t testing.TB, e Engine, opts ...Option) store.Config {
	t.Helper()
	cfg := config(t, e, newestPostgres, opts)
	if e == SQLite {
		copySQLiteTemplate(t, cfg.Database)
	}
	return cfg
}

// EmptyConfig is Config without the schema: store.Migrate is still to be run.
func EmptyConfig(t testing.TB, e Engine, opts ...Option) store.Config {
	t.Helper()
	return config(t, e, testpg.Schema, opts)
}

// config returns how to open a store on e. The address of a PostgreSQL database
// comes from postgres; the file of an SQLite database does not exist yet.
func config(t testing.TB, e Engine, postgres func(testing.TB) string, opts []Option) store.Config {
	t.Helper()
	dir := t.TempDir()
	set := settings{blobs: filepath.Join(dir, "blobs"), Config: store.Config{
		CursorKey: bytes.Repeat([]byte("c"), 32),
		SealKey:   bytes.Repeat([]byte("s"), 32),
		Now:       time.Now,
		TrustNow:  true,
		Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	for _, opt := range opts {
		opt(&set)
	}
	cfg := set.Config
	switch e {
	case SQLite:
		cfg.Database = filepath.Join(dir, "postroom.db")
	case PostgreSQL:
		cfg.Database = postgres(t)
	default:
		t.Fatalf("no such engine: %s", e)
	}
	if cfg.Blobs == nil {
		blobs, err := store.OpenBlobFolder(set.blobs, cfg.Now)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Blobs = blobs
	}
	t.Cleanup(func() {
		if err := cfg.Blobs.Close(); err != nil {
			t.Errorf("close the blobs: %v", err)
		}
	})
	return cfg
}
