//go:build clients

package contract_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store/storetest"
)

const (
	typescript = "testdata/typescript"
	sdkScript  = "../scripts/sdk-typescript"
	// documentedServer is the server URL in the documentation.
	documentedServer = "http://127.0.0.1:8080"
)

// TestTypeScriptClients follows the documentation literally, in empty folders:
// it generates the types of a client from a running server, and runs the program of
// the client documentation with them, which receives a message over SMTP. The test
// replaces the server URL, and `npm install` with local packages of the
// documented versions. All exchanges are validated against the contract. One
// database is enough, because TestDatabasesGiveTheSameResponses compares the two.
func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	wantNode(t)
	in := start(t, storetest.SQLite, newChecker(t))
	target, err := url.Parse(in.api)
	must(t, err)
	proxy := in.check.Proxy(t, target, in.base)
	t.Cleanup(proxy.Close)

	const page = "../docs/clients.md"
	dir := t.TempDir()
	lines, program := programOf(t, page)
	lines = offline(t, page, lines)
	writeFile(t, filepath.Join(dir, "code.ts"), strings.ReplaceAll(program, documentedServer, proxy.URL))
	printed := runLines(t, dir, strings.ReplaceAll(lines, documentedServer, proxy.URL), func(address string) { in.deliver(t, address) })
	if d := cmp.Diff(saidOutput(program), printed); d != "" {
		t.Errorf("the program prints (-documented +got):\n%s", d)
	}
	logExchanges(t, in.check)
}

// TestTypeScriptTypes generates both clients like `make sdk` and checks that
// their types make the necessary distinctions.
func TestTypeScriptTypes(t *testing.T) {
	t.Parallel()
	wantNode(t)
	in := start(t, storetest.SQLite, newChecker(t))
	dir := t.TempDir()
	types, err := os.ReadFile(filepath.Join(typescript, "types.ts"))
	must(t, err)
	writeFile(t, filepath.Join(dir, "types.ts"), string(types))
	if out, err := exec.CommandContext(t.Context(), sdkScript, in.api, dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", sdkScript, err, out)
	}
}

// wantNode skips the test if the Node packages are missing. In CI it fails the
// test.
func wantNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(typescript, "node_modules"))
	}
	if err == nil {
		return
	}
	skiptest.OutsideCI(t, fmt.Sprintf("`make clients` brings the packages of %s: %v", typescript, err))
}

var installLine = regexp.MustCompile(`(?m)^npm install (?:-D )?(.+)$`)

// offline replaces the packages that the lines install with the local ones, and
// fails the test unless the versions are equal.
func offline(t *testing.T, page, lines string) string {
	t.Helper()
	var have struct{ Dependencies map[string]string }
	manifest, err := os.ReadFile(filepath.Join(typescript, "package.json"))
	if err == nil {
		err = json.Unmarshal(manifest, &have)
	}
	must(t, err)
	installed := installLine.FindAllStringSubmatch(lines, -1)
	if len(installed) != 1 {
		t.Fatalf("%s installs %d times, want once", page, len(installed))
	}
	for p := range strings.FieldsSeq(installed[0][1]) {
		at := strings.LastIndexByte(p, '@')
		if at <= 0 || have.Dependencies[p[:at]] != p[at+1:] {
			t.Errorf("%s installs %s, which is not in %s/package.json", page, p, typescript)
		}
	}
	packages, err := filepath.Abs(filepath.Join(typescript, "node_modules"))
	must(t, err)
	return installLine.ReplaceAllLiteralString(lines, "ln -s '"+packages+"' node_modules")
}

// runLines runs shell lines to their end and returns the output of the last
// one, which runs a program. If deliver is not nil, it is called with the
// address in the first line of the program's output.
func runLines(t *testing.T, dir, lines string, deliver func(address string)) string {
	t.Helper()
	last := strings.LastIndexByte(lines, '\n')
	making := exec.CommandContext(t.Context(), "sh", "-ec", lines[:last])
	making.Dir = dir
	if out, err := making.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", lines[:last], err, out)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", lines[last+1:])
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "POSTROOM_KEY="+firstKey)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	printed := bufio.NewReader(out)
	if deliver != nil {
		if address, err := printed.ReadString('\n'); err == nil && strings.Contains(address, "@") {
			deliver(strings.TrimSpace(address))
		}
	}
	rest, err := io.ReadAll(printed)
	must(t, err)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s%s", lines[last+1:], err, rest, &faults)
	}
	return string(rest)
}

// programOf returns the only TypeScript program of the page and, from the block
// before it, the shell lines to build and run it.
func programOf(t *testing.T, page string) (lines, program string) {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	before, _, _ := strings.Cut(string(text), "\n```ts\n")
	const opens = "\n```sh\n"
	at := strings.LastIndex(before, opens)
	if at < 0 {
		t.Fatalf("%s has no block of sh before its program", page)
	}
	lines, _, _ = strings.Cut(before[at+len(opens):], "\n```\n")
	return lines, onlyBlock(t, page, "ts")
}

// onlyBlock returns the only code block of the page in that language.
func onlyBlock(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	_, rest, ok := strings.Cut(string(text), "\n```"+language+"\n")
	code, rest, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed || strings.Contains(rest, "\n```"+language+"\n") {
		t.Fatalf("%s must have one block of %s", page, language)
	}
	return code + "\n"
}

var outputLine = regexp.MustCompile(`(?m)^ *console\.log\(.*\); // prints: (.*)$`)

// saidOutput returns the output that the comments of a program promise.
func saidOutput(code string) string {
	var b strings.Builder
	for _, m := range outputLine.FindAllStringSubmatch(code, -1) {
		b.WriteString(m[1] + "\n")
	}
	return b.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}
