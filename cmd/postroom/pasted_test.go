//go:build clients

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/skiptest"
)

// The tests set XDG_CACHE_HOME. Without the usual cache, the go command would compile
// everything.
var goCache = func() string {
	cache, err := exec.Command("go", "env", "GOCACHE").Output() //nolint:noctx // it ends at once
	if err != nil {
		panic(err)
	}
	return "GOCACHE=" + strings.TrimSpace(string(cache))
}()

// TestREADMEWorksWhenPasted runs the bash blocks of the README and of the tour,
// one after the other in one shell, against a fresh install, and compares what
// they print with the blocks without a language that follow them. Only the ports
// are changed.
func TestREADMEWorksWhenPasted(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "go", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			skiptest.OutsideCI(t, tool+" is not installed")
		}
	}
	// The pages use go run, which compiles at its first use: not while the server's time runs.
	compile := exec.CommandContext(t.Context(), "go", "run", "./cmd/postroom", "version")
	compile.Dir, compile.Env = "../..", append(os.Environ(), goCache)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data := t.TempDir()
	s := serve(t, data)
	api, err := url.Parse(s.api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := exchanges.Proxy(api, http.DefaultTransport)
	t.Cleanup(proxy.Close)
	ports := strings.NewReplacer("127.0.0.1:8080", proxy.Listener.Addr().String(), "127.0.0.1:2525", s.smtp)

	script, want := &strings.Builder{}, &strings.Builder{}
	n := 0
	for _, b := range blocksOf(t, readme, tour) {
		switch b.language {
		case "bash":
			mark := "# " + b.at + "\n"
			fmt.Fprintf(script, "echo '%s'\n%s", strings.TrimSpace(mark), ports.Replace(b.text))
			want.WriteString(mark)
			n++
		case "":
			want.WriteString(b.text)
		}
	}
	if n == 0 {
		t.Fatal("no bash blocks in the pages")
	}
	got := runScript(t, data, script.String())
	if d := cmp.Diff(want.String(), got); d != "" {
		t.Errorf("what the blocks print differs (-pages +got):\n%s\nlog:\n%s", d, s.log)
	}
}

func runScript(t *testing.T, data, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), goCache, "POSTROOM_DATA="+data)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errOut)
	}
	return out.String()
}
