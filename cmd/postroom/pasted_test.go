//go:build clients

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/acmetest"
	"github.com/postroom/postroom/internal/skiptest"
)

// TestREADMEWorksWhenPasted runs the bash blocks of the README in a shell, and those of
// the tour in another with a fresh install, and compares what they print with the blocks
// without a language that follow them. Only the ports are changed.
func TestREADMEWorksWhenPasted(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			skiptest.OutsideCI(t, tool+" is not installed")
		}
	}
	t.Run("README", func(t *testing.T) {
		t.Parallel()
		free := func() string { return "127.0.0.1:" + strconv.Itoa(acmetest.FreePort(t)) }
		http, smtp, submission := free(), free(), free()
		paste(t, readme, t.TempDir(), strings.NewReplacer(
			"postroom dev", "postroom dev --http "+http+" --smtp "+smtp+" --submission "+submission, "127.0.0.1:1025", submission,
			"sleep 1", "sleep 3", // the machine may be busy
		), "trap 'kill %1' EXIT\n", "POSTROOM_URL=http://"+http, "POSTROOM_KEY=dev")
	})
	t.Run("tour", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		s := serve(t, data)
		api, err := url.Parse(s.api)
		if err != nil {
			t.Fatal(err)
		}
		proxy := exchanges.Proxy(api, http.DefaultTransport)
		t.Cleanup(proxy.Close)
		paste(t, tour, data, strings.NewReplacer("127.0.0.1:8080", proxy.Listener.Addr().String(), "127.0.0.1:2525", s.smtp), "", "POSTROOM_DATA="+data)
	})
}

// paste runs the bash blocks of a page in the folder dir.
func paste(t *testing.T, page, dir string, ports *strings.Replacer, before string, env ...string) {
	t.Helper()
	script, want := &strings.Builder{}, &strings.Builder{}
	script.WriteString(before)
	n := 0
	for _, b := range blocksOf(t, page) {
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
		t.Fatal("no bash blocks in the page")
	}
	got := runScript(t, dir, script.String(), env...)
	if d := cmp.Diff(want.String(), got); d != "" {
		t.Errorf("what the blocks print differs (-page +got):\n%s", d)
	}
}

// runScript runs a script in a folder that has the command postroom in its path.
func runScript(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "postroom")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+bin+":"+os.Getenv("PATH"))...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errOut)
	}
	return out.String()
}
