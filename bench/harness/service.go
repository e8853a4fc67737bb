// Package harness is what the benchmarks share: it runs a service of their own, with its
// own folder and, on PostgreSQL, its own schema, both removed afterwards; it calls its API
// and reads its processor time.
package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver for creating and dropping the schema

	"github.com/postroom/postroom/store"
)

// Key is the service's first key.
const Key = "sk_live_bench_its_own_only_key"

// Settings are the flags of a benchmark that runs a service of its own.
type Settings struct {
	program, pprof string
	postgres       bool
}

// Flags defines the flags.
func Flags() *Settings {
	var s Settings
	flag.StringVar(&s.program, "service", "", "the program to measure (default: built from ./cmd/postroom)")
	flag.BoolVar(&s.postgres, "postgres", false, "use a new schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES")
	flag.StringVar(&s.pprof, "pprof", "", "address at which the service serves profiles, such as 127.0.0.1:6060")
	return &s
}

// Place is a folder and a database for the service under measurement.
type Place struct {
	*Settings
	dir      string
	database string
	schema   string // on PostgreSQL
	server   string // URL of the PostgreSQL server
}

// With runs a measurement in a new place, and removes the place.
func (s *Settings) With(ctx context.Context, measure func(*Place) error) error {
	dir, err := os.MkdirTemp("", "postroom-bench-")
	if err != nil {
		return err
	}
	p := &Place{Settings: s, dir: dir, database: filepath.Join(dir, "postroom.db")}
	if s.postgres {
		err = p.makeSchema(ctx)
	}
	if err == nil && p.program == "" {
		p.program = filepath.Join(dir, "postroom")
		build := exec.CommandContext(ctx, "go", "build", "-o", p.program, "./cmd/postroom")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err == nil {
		err = measure(p)
	}
	return errors.Join(err, p.remove(context.WithoutCancel(ctx)))
}

// Engine names the database.
func (p *Place) Engine() string {
	if p.schema != "" {
		return "PostgreSQL"
	}
	return "SQLite"
}

func (p *Place) makeSchema(ctx context.Context) error {
	p.server = os.Getenv("POSTROOM_TEST_POSTGRES")
	u, err := url.Parse(p.server)
	if err != nil || p.server == "" {
		return errors.New("set POSTROOM_TEST_POSTGRES to the URL of a PostgreSQL server")
	}
	p.schema = "bench_" + strings.ToLower(rand.Text())
	q := u.Query()
	q.Set("search_path", p.schema)
	u.RawQuery = q.Encode()
	p.database = u.String()
	return p.exec(ctx, "CREATE SCHEMA "+p.schema)
}

func (p *Place) exec(ctx context.Context, statement string) error {
	db, err := sqlx.Open("postgres", p.server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (p *Place) remove(ctx context.Context) error {
	err := os.RemoveAll(p.dir)
	if p.schema != "" {
		err = errors.Join(err, p.exec(ctx, "DROP SCHEMA IF EXISTS "+p.schema+" CASCADE"))
	}
	return err
}

// Open opens the store. The service must not run.
func (p *Place) Open(ctx context.Context) (*store.Store, error) {
	blobs, err := store.OpenBlobFolder(filepath.Join(p.dir, "blobs"), time.Now)
	if err != nil {
		return nil, err
	}
	secret := []byte("the bench makes no cursors itself")[:32]
	return store.Open(ctx, store.Config{Database: p.database, Blobs: blobs, CursorKey: secret, SealKey: secret})
}

// Service is the running program.
type Service struct {
	*Process
	// Address is the host:port of its API.
	Address string
}

// Start starts the service with additional settings and waits until it is ready.
func (p *Place) Start(ctx context.Context, settings ...string) (*Service, error) {
	cmd := exec.CommandContext(ctx, p.program, "serve")
	address, err := FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), "POSTROOM_DATA="+p.dir, "POSTROOM_DATABASE="+p.database, "POSTROOM_BOOTSTRAP_KEY="+Key,
		"POSTROOM_RATE_LIMITS=off", "POSTROOM_HTTP_MAX_CONNS=1000000", "POSTROOM_HTTP_MAX_CONNS_PER_IP=1000000", "POSTROOM_HTTP="+address, "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_LOG_LEVEL=warn", "POSTROOM_PPROF="+p.pprof)
	cmd.Env = append(cmd.Env, settings...)
	process, err := StartProcess(cmd, true)
	return &Service{process, address}, err
}

// FreeAddress returns a local address that no program listens on.
func FreeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
