// Package s3test runs a real S3 server for tests: versitygw, over a folder that is removed
// when the test ends. It listens on an unused port.
package s3test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
)

const (
	// AccessKey is the public half of the credentials of every server.
	AccessKey = "POSTROOMTESTS"
	// SecretKey is the secret half of them.
	SecretKey = "secret-of-the-s3-server-of-the-tests"

	// version is the version of the program that `make` installs into the folder bin.
	version = "v1.8.0"
	timeout = 30 * time.Second
)

// Server is an S3 server with one bucket.
type Server struct {
	// Endpoint is its address, http://127.0.0.1:port.
	Endpoint string
	// Bucket is the name of the bucket.
	Bucket string
	// Dir is the folder whose files are the objects of the bucket.
	Dir string

	t       testing.TB
	program string
	addr    string
	process *exec.Cmd
}

var count atomic.Int64

// Start starts a server. Without the program it skips the test, or fails it in CI.
func Start(t testing.TB) *Server {
	t.Helper()
	root := t.TempDir()
	s := &Server{t: t, program: find(t), Bucket: "mail-" + strconv.FormatInt(count.Add(1), 10)}
	s.Dir = filepath.Join(root, s.Bucket)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.Endpoint = "http://" + s.addr
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.Resume()
	t.Cleanup(s.Stop)
	return s
}

// find returns the program: the one in POSTROOM_TEST_VERSITYGW, the one that make builds, or
// an installed one.
func find(t testing.TB) string {
	t.Helper()
	if program := os.Getenv("POSTROOM_TEST_VERSITYGW"); program != "" {
		return program
	}
	dir, err := os.Getwd() // the folder of the package under test
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if program, err := exec.LookPath(filepath.Join(dir, "bin", "versitygw-"+version)); err == nil {
			return program
		}
	}
	program, err := exec.LookPath("versitygw")
	if err != nil {
		const why = "versitygw not found: run `make clients`, which builds it, or set POSTROOM_TEST_VERSITYGW"
		skiptest.OutsideCI(t, why)
	}
	return program
}

// Address returns the setting for the bucket, with additional parameters such as
// "links=http://...".
func (s *Server) Address(more ...string) string {
	return "s3://" + s.Bucket + "?" + strings.Join(append([]string{"endpoint=" + s.Endpoint}, more...), "&")
}

// Environment returns the variables with the credentials.
func (s *Server) Environment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + SecretKey}
}

// Stop ends the server at once, like a power failure.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended by itself
	_ = s.process.Wait()         // its exit status does not matter
	s.process = nil
}

// Resume starts the server again on the same data.
func (s *Server) Resume() {
	s.t.Helper()
	s.process = exec.Command(s.program, //nolint:gosec,noctx // the path comes from find, and Stop ends it
		"--access", AccessKey, "--secret", SecretKey, "--port", s.addr, "--quiet",
		"posix", "--nometa", filepath.Dir(s.Dir))
	s.process.Stdout, s.process.Stderr = s.t.Output(), s.t.Output()
	s.process.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(min(2, runtime.NumCPU())))
	if err := s.process.Start(); err != nil {
		s.process = nil
		s.t.Fatalf("start the S3 server: %v", err)
	}
	health, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.Endpoint+"/health", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for late := time.After(timeout); ; {
		res, err := http.DefaultClient.Do(health)
		if err == nil {
			_ = res.Body.Close() // any response will do
			return
		}
		select {
		case <-again.C:
		case <-late:
			s.t.Fatalf("the S3 server does not respond: %v", err)
		}
	}
}
