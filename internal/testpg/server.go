// Package testpg provides a private PostgreSQL for tests: one server for a test run, in a
// temporary folder, behind a Unix socket that no other user can open, with a separate
// database for each test.
//
// The server needs no setup: it uses the installed server programs, runs as an
// unprivileged user even when the tests run as root, and is removed with its folder when
// the process that started it ends for any reason. A test that needs PostgreSQL is skipped
// only on a developer's machine without PostgreSQL; in CI it fails.
package testpg

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/lib/pq" // the same driver as the store
)

const (
	superuser = "postgres" // created by initdb, used only to set up the server
	role      = "postroom" // the role of the tests: not a superuser, may create databases

	// DefaultDatabase exists on a started server, is empty, and belongs to
	// the role that URL names.
	DefaultDatabase = "postroom"

	startTimeout = 30 * time.Second
	stopTimeout  = 30 * time.Second
)

// Options configure the server. The zero value is for tests that do not simulate a power
// failure.
type Options struct {
	// Fsync makes the server as durable as in production. Without it, committed
	// data survives a crash of the server but not of the machine,
	// and tests run much faster.
	Fsync bool
	// MaxConnections bounds all tests of the run together; 0 means 500.
	MaxConnections int
}

// Server is one running PostgreSQL. Its methods are not for concurrent use.
type Server struct {
	bin   string
	dir   string // of data, log and socket; empty once stopped
	owner owner
	watch *watchdog
}

// Start creates a new, empty server and waits until it accepts connections. The error
// wraps ErrNotFound when the server programs are not installed. The caller must stop the
// server; when the caller's process ends first, the server stops by itself.
func Start(ctx context.Context, opts Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	bin, _, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	o, err := serverOwner()
	if err != nil {
		return nil, err
	}
	dir, err := o.makeDir()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, owner: o}
	if err := s.setUp(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), s.Stop())
	}
	return s, nil
}

// setUp starts the watchdog, creates and configures the server's folder, and starts the
// server. Stop undoes whatever part was done.
func (s *Server) setUp(ctx context.Context, opts Options) (err error) {
	if s.watch, err = startWatchdog(s.owner, s.bin, s.dir); err != nil {
		return err
	}
	_, err = s.run(ctx, "initdb", "-D", s.data(), "-U", superuser, "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	if err := s.configure(opts); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return s.createRole(ctx)
}

func (s *Server) configure(opts Options) error {
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 500
	}
	conf := fmt.Sprintf("\nlisten_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = %d\n",
		strings.ReplaceAll(s.dir, "'", "''"), opts.MaxConnections)
	if !opts.Fsync {
		conf += "fsync = off\nfull_page_writes = off\nwal_level = minimal\nmax_wal_senders = 0\n"
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(conf)
	return errors.Join(err, f.Close())
}

func (s *Server) createRole(ctx context.Context) error {
	db, err := sql.Open("postgres", s.url(superuser, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, q := range []string{
		`CREATE ROLE ` + role + ` LOGIN CREATEDB`,
		`CREATE DATABASE ` + DefaultDatabase + ` OWNER ` + role,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// URL returns the URL of a database for an ordinary role, which owns DefaultDatabase and
// may create others.
func (s *Server) URL(db string) string { return s.url(role, db) }

func (s *Server) url(user, db string) string {
	q := url.Values{"host": {s.dir}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + db, RawQuery: q.Encode()}
	return u.String()
}

// Dir returns the folder of the server's data and log.
func (s *Server) Dir() string { return s.dir }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Stop ends the server and removes its folder. Stopping it twice is not an error.
func (s *Server) Stop() error {
	if s.dir == "" {
		return nil
	}
	err := s.StopImmediate() // the data is removed, so nothing must be flushed
	if s.watch != nil {
		err = errors.Join(err, s.watch.release())
	}
	err = errors.Join(err, os.RemoveAll(s.dir))
	s.dir = ""
	return err
}

// StopImmediate ends the server at once, as a crash would: transactions in progress are
// lost, and the next Restart recovers from the log. It is not an error if the server is
// already down.
func (s *Server) StopImmediate() error { return s.stop("immediate") }

// Restart stops the server cleanly, if it runs, and starts it on the same data at the same
// address.
func (s *Server) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.stop("fast"); err != nil {
		return err
	}
	return s.start(ctx)
}

// start runs the postmaster in the background and waits until it accepts connections.
func (s *Server) start(ctx context.Context) error {
	log := filepath.Join(s.dir, "log")
	if _, err := s.run(ctx, "pg_ctl", "start", "-s", "-w", "-D", s.data(), "-l", log); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(log))
	}
	return nil
}

func (s *Server) stop(mode string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if !s.up(ctx) {
		return nil
	}
	_, err := s.run(ctx, "pg_ctl", "stop", "-s", "-w", "-m", mode, "-D", s.data())
	if err != nil && s.up(ctx) { // it may have ended in between
		return err
	}
	return nil
}

func (s *Server) up(ctx context.Context) bool {
	_, err := s.run(ctx, "pg_ctl", "status", "-D", s.data())
	return err == nil
}

// run runs a server program as the server's owner until it ends.
func (s *Server) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir // the owner may not be able to enter the current folder
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGDATA=", "PGOPTIONS=")
	cmd.WaitDelay = time.Second
	s.owner.apply(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}

// tail returns the end of the server's log, for the error of a server that did not start.
func tail(path string) string {
	const most = 4096
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-most):]))
}
