//go:build clients

package contract_test

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store/storetest"
)

// TestGoPrograms compiles and runs the programs in the README and the client
// documentation, unchanged. Their exchanges are validated against the contract.
func TestGoPrograms(t *testing.T) {
	t.Parallel()
	in := start(t, storetest.SQLite, newChecker(t))
	target, err := url.Parse(in.api)
	must(t, err)
	proxy := in.check.Proxy(t, target, in.base)
	t.Cleanup(proxy.Close)
	for _, page := range []string{"../README.md", "../docs/clients.md", quickstart} {
		code := onlyBlock(t, page, "go")
		if !strings.Contains(code, "package main") {
			code = fmt.Sprintf(fragmentProgram, code)
		}
		var want []string
		for _, m := range printed.FindAllStringSubmatch(code, -1) {
			want = append(want, m[1])
		}
		if len(want) == 0 {
			t.Fatalf("the program of %s prints nothing", page)
		}
		server := strings.NewReplacer(documentedServer, proxy.URL, `"http://127.0.0.1:8025", "dev"`, fmt.Sprintf("%q, %q", proxy.URL, firstKey))
		binary := buildGo(t, server.Replace(code))
		if d := cmp.Diff(want, in.runGo(t, binary, len(want), strings.Contains(code, "os.Interrupt"))); d != "" {
			t.Errorf("the program of %s prints (-documented +got):\n%s", page, d)
		}
	}
	logExchanges(t, in.check)
}

// fragmentProgram is the program around the lines of the README.
const fragmentProgram = `package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

var ctx = context.Background()

func main() {
%s}

func signUp(address string) {
	postroom, err := client.New("http://127.0.0.1:8080", os.Getenv("POSTROOM_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	shop, err := postroom.NewInbox(ctx, gen.InboxCreate{})
	if err != nil {
		log.Fatal(err)
	}
	welcome := gen.MessageSend{To: client.To(address), Subject: "Welcome", Text: client.Body("Your verification code is 482913.")}
	if _, err := postroom.Send(ctx, shop.ID, welcome); err != nil {
		log.Fatal(err)
	}
}
`

var printed = regexp.MustCompile(`(?m)^\s*fmt\.Println\(.*\) // prints: (.*)$`)

// buildGo compiles a program in a new module.
func buildGo(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.go"), code)
	binary := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// runGo runs a program to its end or, if tell is set, until it has printed n
// lines, and returns them. If a line before that is an address, a message is
// delivered to it.
func (in *install) runGo(t *testing.T, binary string, n int, tell bool) (lines []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
	dieWithUs(cmd)
	cmd.Env, cmd.Stderr = append(os.Environ(), "POSTROOM_KEY="+firstKey), t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for all := bufio.NewScanner(out); (!tell || len(lines) < n) && all.Scan(); {
		if line := all.Text(); strings.HasSuffix(line, "@"+mailDomain) {
			in.deliver(t, line)
		} else {
			lines = append(lines, line)
		}
	}
	if tell {
		_ = cmd.Process.Signal(syscall.SIGINT) // Wait reports whether it has already ended
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	return lines
}
