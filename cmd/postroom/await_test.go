package main

import (
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
)

// startWaiting starts the program while its PostgreSQL server is unreachable, and
// returns when the program logs that it waits. back makes the server reachable.
func startWaiting(t *testing.T) (s *served, back func()) {
	t.Helper()
	u, err := url.Parse(testpg.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	const name = "/.s.PGSQL.5432"
	q, folder := u.Query(), t.TempDir()
	socket := q.Get("host") + name
	q.Set("host", folder)
	u.RawQuery = q.Encode()
	s = &served{cmd: command(t, t.TempDir(), []string{"POSTROOM_DATABASE=" + u.String()}, "serve"), stdout: &syncBuffer{}, log: &syncBuffer{}, ended: make(chan error, 1)}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { s.stop(t) })
	waittest.Until(t, "it waits for the database", func() bool { return strings.Contains(s.log.String(), "waiting for the database") })
	return s, func() {
		if err := os.Symlink(socket, folder+name); err != nil {
			t.Fatal(err)
		}
	}
}

// A node that starts while its database is away waits for it, and serves as soon
// as it is there.
func TestServeWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s, back := startWaiting(t)
	back()
	waittest.Until(t, "it serves", func() bool { return strings.Contains(s.stdout.String(), "SMTP") })
}

// A node that waits for its database stops on a signal.
func TestServeStopsWhileItWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s, _ := startWaiting(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			t.Errorf("it ended with %v:\n%s", err, s.log)
		}
		s.ended <- nil // for the clean-up
	case <-time.After(time.Minute):
		t.Error("it did not end")
	}
}
