package main

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
	_ "github.com/lib/pq" // the schema is made and dropped by its driver

	"github.com/postroom/postroom/store"
)

// key is the service's first key.
const key = "sk_live_bench_read_only_key"

// place is where the service keeps what it is measured with.
type place struct {
	dir      string
	program  string
	database string
	schema   string // on PostgreSQL, to be dropped
	server   string // address of the PostgreSQL server
}

// newPlace makes a folder, a program, and with -postgres a schema.
func newPlace(ctx context.Context, o options) (*place, error) {
	dir, err := os.MkdirTemp("", "postroom-read-")
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, program: o.service, database: filepath.Join(dir, "postroom.db")}
	if o.postgres {
		err = p.makeSchema(ctx)
	}
	if err == nil && p.program == "" {
		p.program = filepath.Join(dir, "postroom")
		build := exec.CommandContext(ctx, "go", "build", "-o", p.program, "./cmd/postroom")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		return nil, errors.Join(err, p.remove(ctx))
	}
	return p, nil
}

func (p *place) engine() string {
	if p.schema != "" {
		return "PostgreSQL"
	}
	return "SQLite"
}

func (p *place) makeSchema(ctx context.Context) error {
	p.server = os.Getenv("POSTROOM_TEST_POSTGRES")
	u, err := url.Parse(p.server)
	if err != nil || p.server == "" {
		return errors.New("POSTROOM_TEST_POSTGRES names no server")
	}
	p.schema = "bench_read_" + strings.ToLower(rand.Text())
	q := u.Query()
	q.Set("search_path", p.schema)
	u.RawQuery = q.Encode()
	p.database = u.String()
	return p.exec(ctx, "CREATE SCHEMA "+p.schema)
}

func (p *place) exec(ctx context.Context, statement string) error {
	db, err := sqlx.Open("postgres", p.server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

// remove leaves nothing behind.
func (p *place) remove(ctx context.Context) error {
	err := os.RemoveAll(p.dir)
	if p.schema != "" {
		err = errors.Join(err, p.exec(ctx, "DROP SCHEMA IF EXISTS "+p.schema+" CASCADE"))
	}
	return err
}

// open opens the store, while the service does not run.
func (p *place) open(ctx context.Context) (*store.Store, error) {
	blobs, err := store.OpenBlobFolder(filepath.Join(p.dir, "blobs"), time.Now)
	if err != nil {
		return nil, err
	}
	secret := []byte("the bench makes no cursors itself")[:32]
	return store.Open(ctx, store.Config{Database: p.database, Blobs: blobs, CursorKey: secret, SealKey: secret})
}

// service is the running program.
type service struct {
	cmd  *exec.Cmd
	base string
}

// start starts the service and waits until it is ready.
func (p *place) start(ctx context.Context, pprof string) (*service, error) {
	cmd := exec.CommandContext(ctx, p.program, "serve")
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), "POSTROOM_DATA="+p.dir, "POSTROOM_DATABASE="+p.database, "POSTROOM_BOOTSTRAP_KEY="+key,
		"POSTROOM_RATE_LIMITS=off", "POSTROOM_HTTP="+address, "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_LOG_LEVEL=warn", "POSTROOM_PPROF="+pprof)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	s := &service{cmd: cmd, base: "http://" + address}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		s.stop()
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, nil
}

// freeAddress is one that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait() // what it served is not kept
}
