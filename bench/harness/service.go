// Package harness is what the benchmarks share: it runs a service of their own, with its
// own folder and, on PostgreSQL, its own schema, both removed afterwards; it calls its API
// and reads its processor time.
package harness

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver for creating and dropping the schema

	"github.com/postroom/postroom/store"
)

// Key is the service's first key.
const Key = "sk_live_bench_its_own_only_key"

// Place is a folder and a database for the service under measurement.
type Place struct {
	dir      string
	program  string
	database string
	schema   string // on PostgreSQL
	server   string // URL of the PostgreSQL server
}

// New creates a folder, builds the program unless one is given and, if postgres is set,
// creates a schema on the PostgreSQL server in POSTROOM_TEST_POSTGRES.
func New(ctx context.Context, program string, postgres bool) (*Place, error) {
	dir, err := os.MkdirTemp("", "postroom-bench-")
	if err != nil {
		return nil, err
	}
	p := &Place{dir: dir, program: program, database: filepath.Join(dir, "postroom.db")}
	if postgres {
		err = p.makeSchema(ctx)
	}
	if err == nil && p.program == "" {
		p.program = filepath.Join(dir, "postroom")
		build := exec.CommandContext(ctx, "go", "build", "-o", p.program, "./cmd/postroom")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		return nil, errors.Join(err, p.Remove(ctx))
	}
	return p, nil
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

// Remove deletes the folder and the schema.
func (p *Place) Remove(ctx context.Context) error {
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
	cmd *exec.Cmd
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
		"POSTROOM_RATE_LIMITS=off", "POSTROOM_HTTP_MAX_CONNS=1000000", "POSTROOM_HTTP_MAX_CONNS_PER_IP=1000000", "POSTROOM_HTTP="+address, "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_LOG_LEVEL=warn")
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	s := &Service{cmd: cmd, Address: address}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, nil
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

// Stop ends the service.
func (s *Service) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // its exit status does not matter
}

// CPU returns the processor time that the service has used, or 0 if it is unknown.
func (s *Service) CPU() time.Duration { return CPU(s.cmd.Process.Pid) }

// Memory returns the resident memory of the service in bytes, or 0 if it is unknown.
func (s *Service) Memory() int64 { return Memory(s.cmd.Process.Pid) }
