package client_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/testprogram"
)

// firstKey is the full-access key of the test server.
const firstKey = "sk_live_client_0123456789abcdefghijklmn"

// TestMain runs the tests and examples with their own server. POSTROOM_URL and
// POSTROOM_KEY contain its address and key. The address is that of a proxy that
// validates all exchanges against the contract.
func TestMain(m *testing.M) { os.Exit(serveAndRun(m)) }

func serveAndRun(m *testing.M) (code int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "client:", err)
		return 1
	}
	dir, err := os.MkdirTemp("", "postroom-client-")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system cleans up otherwise
	program, err := testprogram.Build(dir)
	if err != nil {
		return fail(err)
	}
	server := exec.Command(program, "serve")
	server.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "POSTROOM_DATA=" + filepath.Join(dir, "data"),
		"POSTROOM_HTTP=127.0.0.1:0", "POSTROOM_SMTP=127.0.0.1:0", "POSTROOM_BOOTSTRAP_KEY=" + firstKey, "POSTROOM_LOG_LEVEL=error",
	}
	server.Stderr = os.Stderr
	dieWithUs(server)
	address, err := start(server)
	if err != nil {
		return fail(err)
	}
	target, err := url.Parse(address)
	if err != nil {
		return fail(err)
	}
	exchanges := contractcheck.NewSuite("../gen/openapi.json", 0)
	watched := exchanges.Proxy(target, http.DefaultTransport)
	_ = os.Setenv("POSTROOM_URL", watched.URL) // cannot fail with these names
	_ = os.Setenv("POSTROOM_KEY", firstKey)
	code = m.Run()
	watched.Close()
	code = exchanges.End(os.Stderr, "client", testing.Verbose(), code)
	_ = server.Process.Signal(syscall.SIGTERM) // Wait reports whether it has already ended
	if err := server.Wait(); err != nil {
		return fail(fmt.Errorf("the server did not end well: %w", err))
	}
	return code
}

// start starts the server and returns its address once it is ready.
func start(server *exec.Cmd) (string, error) {
	out, err := server.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := server.Start(); err != nil {
		return "", err
	}
	address := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 2 && fields[0] == "API" {
			address = fields[1]
		}
		if len(fields) > 1 && fields[0] == "Key" { // the last line
			return address, nil
		}
	}
	return "", fmt.Errorf("the server ended instead of serving: %w", server.Wait())
}
