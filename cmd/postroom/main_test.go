package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/testprogram"
	"github.com/postroom/postroom/store/storetest"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "postroom-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	go exchanges.Ready() // beside the compiler
	if binary, err = testprogram.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.Setenv("XDG_CACHE_HOME", dir) // cannot fail: the names are valid
	code := m.Run()
	return exchanges.End(os.Stderr, "cmd/postroom", testing.Verbose(), code)
}

// exchanges are all those with the API of the program under test.
var exchanges = contractcheck.NewSuite("../../gen/openapi.json", 300)

// watched is a client of the API whose exchanges are among them.
func watched() *http.Client {
	return &http.Client{Transport: exchanges.Transport(http.DefaultTransport)}
}

// patience is how long a test waits for what should take a moment.
const patience = 30 * time.Second

// command is the program with these arguments, and no settings but env and what
// keeps tests apart.
func command(t *testing.T, data string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	// Parallel subtests may wait minutes for their turn while the service runs.
	ctx, cancel := context.WithTimeout(context.Background(), 30*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"POSTROOM_DATA=" + data, "POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0",
	}, env...)
	return cmd
}

// runCommand runs the program to its end and returns what it wrote.
func runCommand(t *testing.T, data string, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := command(t, data, env, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// refused runs `postroom serve`, which must end with an error, and returns the
// error's text.
func refused(t *testing.T, data string, env []string, args ...string) string {
	t.Helper()
	stdout, stderr, err := runCommand(t, data, env, append([]string{"serve"}, args...)...)
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Fatalf("serve ended with %v, want an exit status; it said\n%s%s", err, stdout, stderr)
	}
	if stdout != "" {
		t.Errorf("serve said on stdout:\n%s", stdout)
	}
	return stderr
}

// served is a running `postroom serve`.
type served struct {
	cmd         *exec.Cmd
	startup     time.Duration // until it said that it is ready
	stdout, log *syncBuffer
	api, smtp   string
	https       string // host:port; empty when there is none
	submission  string // empty when there is none
	submissions string // likewise, with TLS
	metrics     string // empty when none are served
	key         string // empty when it was not shown
	ended       chan error
	endOnce     sync.Once
}

// serve starts the program and waits until it is ready. The cleanup stops it and
// checks the exit status.
func serve(t *testing.T, data string, env ...string) *served {
	t.Helper()
	return begin(t, command(t, data, env, "serve"))
}

// begin is serve for any command that serves.
func begin(t *testing.T, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{cmd: cmd, stdout: &syncBuffer{}, log: &syncBuffer{}, ended: make(chan error, 1)}
	s.cmd.Stderr = s.log
	pipe, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(io.TeeReader(pipe, s.stdout))
	for s.key == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("serve ended before it was ready (%v):\n%s%s", s.cmd.Wait(), s.stdout, s.log)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(line), "  ")
		switch value = strings.TrimSpace(value); name {
		case "API":
			s.api = value
		case "HTTPS":
			s.https = value
		case "SMTP":
			s.smtp = value
		case "Submission":
			s.submission = value
		case "Submissions":
			s.submissions = value
		case "Metrics":
			s.metrics = value
		case "Key":
			s.key = value
		}
	}
	s.startup = time.Since(start)
	if strings.Contains(s.key, " ") {
		s.key = ""
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines) // Wait closes the pipe
		s.ended <- s.cmd.Wait()
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

// stop ends the service by SIGTERM and wants it to exit with 0.
func (s *served) stop(t *testing.T) {
	t.Helper()
	s.endOnce.Do(func() { s.end(t) })
}

func (s *served) end(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("the service wrote:\n%s%s", s.stdout, s.log)
	}
	s.signal(t, syscall.SIGTERM)
	if err := s.await(); err != nil {
		t.Errorf("serve ended with %v; its log:\n%s", err, s.log)
	}
}

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// wait returns how the service ended, which the test has brought about.
func (s *served) wait() (err error) {
	s.endOnce.Do(func() { err = s.await() })
	return err
}

func (s *served) await() error {
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patience):
		return errors.Join(errors.New("it did not end"), s.cmd.Process.Kill())
	}
}

// call makes a request and returns its status and JSON.
func (s *served) call(t *testing.T, key, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.api+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Close = true // a connection that is kept would have a second of grace at shutdown
	res, err := watched().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, out
}

// syncBuffer is a bytes.Buffer that a process may write to while a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// onEngine runs test on its engines (storetest.Engines), as parallel subtests. env
// names the database.
func onEngine(t *testing.T, test func(t *testing.T, data string, env []string)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			var env []string
			if e == storetest.PostgreSQL {
				env = []string{"POSTROOM_DATABASE=" + testpg.Schema(t)}
			}
			test(t, t.TempDir(), env)
		})
	}
}
