//go:build clients

package contract_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// restarting is a program that ends and starts again on a POST to its control, at the
// same address and with the same data: at first in order, then killed, and so on.
type restarting struct {
	api, control string

	env []string
	mu  sync.Mutex
	cmd *exec.Cmd
	n   int
}

func startRestarting(t *testing.T) *restarting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	_ = l.Close() // the program listens there
	r := &restarting{api: "http://" + addr, env: append(environ(),
		"POSTROOM_DATA="+t.TempDir(), "POSTROOM_HTTP="+addr, "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_BOOTSTRAP_KEY="+firstKey, "POSTROOM_RATE_LIMITS=off")}
	must(t, r.start())
	t.Cleanup(func() {
		if err := r.end(syscall.SIGTERM); err != nil {
			t.Errorf("the program did not end well: %v", err)
		}
	})
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := r.restart(); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(control.Close)
	r.control = control.URL
	return r
}

// start runs the program and returns once it is ready.
func (r *restarting) start() error {
	cmd := exec.Command(program, "serve") //nolint:noctx // end ends it, in order
	cmd.Env = r.env
	dieWithUs(cmd)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the program is not ready: %w\n%s", errors.Join(err, cmd.Wait()), &log)
		}
		if strings.Contains(line, "is ready") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // until the program ends
	r.cmd = cmd
	return nil
}

func (r *restarting) end(how syscall.Signal) error {
	if err := r.cmd.Process.Signal(how); err != nil {
		return err
	}
	if err := r.cmd.Wait(); err != nil && how != syscall.SIGKILL {
		return err
	}
	return nil
}

func (r *restarting) restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	how := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[r.n%2]
	r.n++
	if err := r.end(how); err != nil {
		return err
	}
	return r.start()
}

// sdkSettings let many sign-ups run at once with one key.
var sdkSettings = []string{"POSTROOM_RATE_LIMITS=off"}

// sdkFlows returns the number of sign-ups that the tests of the SDKs run at once.
func sdkFlows(t *testing.T) string {
	t.Helper()
	const flows = "50"
	if v := os.Getenv("POSTROOM_TEST_FLOWS"); v != "" {
		if _, err := strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return flows
}
