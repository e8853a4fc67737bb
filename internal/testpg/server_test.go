//go:build unix

package testpg

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain turns this test binary into a program that starts a server and then waits to
// be killed, if a test below started it for that.
func TestMain(m *testing.M) {
	if os.Getenv("TESTPG_HELPER") == "start" {
		helpStart()
		return
	}
	os.Exit(m.Run())
}

func helpStart() {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(s.Dir())
	time.Sleep(time.Hour) // select {} would end the process: no goroutine is left to run
	_ = s.Stop()
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Fsync: true, MaxConnections: 17})
	db := open(t, s.URL(DefaultDatabase))

	wantRow(t, db, `SHOW fsync`, "on")
	wantRow(t, db, `SHOW max_connections`, "17")
	wantRow(t, db, `SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user`, "false")
	exec1(t, db, `CREATE TABLE kept (word text)`)
	exec1(t, db, `INSERT INTO kept VALUES ('committed')`)

	if err := s.StopImmediate(); err != nil {
		t.Fatalf("crash: %v", err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("the server still responds after a crash")
	}
	if err := s.StopImmediate(); err != nil {
		t.Errorf("crash again: %v", err)
	}
	for range 2 { // up from down, and up from up
		if err := s.Restart(t.Context()); err != nil {
			t.Fatalf("restart: %v", err)
		}
		wantRow(t, open(t, s.URL(DefaultDatabase)), `SELECT word FROM kept`, "committed")
	}

	dir := s.Dir()
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder still exists: %v", err)
	}
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	needServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "TESTPG_HELPER=start")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(dir, "/") {
		t.Fatalf("the helper printed %q, %v", line, err)
	}
	db := open(t, (&Server{dir: dir}).URL(DefaultDatabase))
	wantRow(t, db, `SELECT 'up'`, "up")

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, errStat := os.Stat(dir)
		errPing := db.PingContext(ctx)
		if errors.Is(errStat, fs.ErrNotExist) && errPing != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("a minute after its parent: folder %v, ping %v", errStat, errPing)
		}
	}
}

// needServer skips the test, or fails it in CI, when PostgreSQL is missing.
func needServer(t *testing.T) {
	t.Helper()
	_, _, err := Find(t.Context())
	switch {
	case err == nil:
	case required(os.Getenv):
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}

func startServer(t *testing.T, opts Options) *Server {
	t.Helper()
	needServer(t)
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

func open(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec1(t *testing.T, db *sql.DB, q string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), q); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}

func wantRow(t *testing.T, db *sql.DB, q, want string) {
	t.Helper()
	var got string
	if err := db.QueryRowContext(t.Context(), q).Scan(&got); err != nil || got != want {
		t.Errorf("%s: got %q, %v; want %q", q, got, err, want)
	}
}
