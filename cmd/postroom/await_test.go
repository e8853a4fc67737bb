package main

import (
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
)

// startWaiting starts the program while its PostgreSQL server is unreachable, and
// returns when the program logs that it waits. back makes the server reachable.
func startWaiting(t *testing.T) (s *served, back func()) {
	t.Helper()
	u, err := url.Parse(testpg.Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	socket := q.Get("host") + "/.s.PGSQL.5432"
	q.Del("host")
	u.Host, u.RawQuery = addr, q.Encode()
	data := t.TempDir()
	s = &served{cmd: command(t, data, []string{"POSTROOM_DATABASE=" + u.String()}, "serve"), stdout: &syncBuffer{}, log: &syncBuffer{}, ended: make(chan error, 1)}
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { s.stop(t) })
	awaitThat(t, s, "it waits for the database", func() bool { return strings.Contains(s.log.String(), "waiting for the database") })
	return s, func() {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go join(c, socket)
			}
		}()
	}
}

// join forwards a connection to a Unix socket until either side closes.
func join(client net.Conn, socket string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

func awaitThat(t *testing.T, s *served, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s\n%s%s", what, s.stdout, s.log)
		}
	}
}

// A node that starts while its database is away waits for it, and serves as soon
// as it is there.
func TestServeWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s, back := startWaiting(t)
	back()
	awaitThat(t, s, "it serves", func() bool { return strings.Contains(s.stdout.String(), "SMTP") })
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
