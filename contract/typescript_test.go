package contract_test

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store/storetest"
)

const (
	typescript = "testdata/typescript"
	sdkScript  = "../scripts/sdk-typescript"
	// documentedServer is where the documentation has the API.
	documentedServer = "http://127.0.0.1:8080"
)

// TestTypeScriptClients makes clients from what a running server serves, by two
// generators, and runs with them what the documentation shows, word for word: the
// README's program has one inbox write to another, and that of the page about
// clients takes a mail that comes in over SMTP. All that they say to the server is
// held against the contract. One database is enough: TestDatabasesAnswerAlike
// says that they answer alike.
func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	wantNode(t)
	in := start(t, storetest.SQLite, newChecker(t))
	target, err := url.Parse(in.api)
	if err != nil {
		t.Fatal(err)
	}
	proxy := in.check.Proxy(t, target, in.base)
	t.Cleanup(proxy.Close)

	dir := t.TempDir()
	pages := map[string]string{"readme": "../README.md", "clients": "../docs/clients.md"}
	wants := map[string]string{} // what the program prints
	for name, page := range pages {
		code := onlyBlock(t, page, "ts")
		wantMadeBy(t, page, code)
		wants[name] = saidOutput(code)
		writeFile(t, filepath.Join(dir, name+".ts"), strings.ReplaceAll(code, documentedServer, proxy.URL))
	}
	types, err := os.ReadFile(filepath.Join(typescript, "types.ts"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "types.ts"), string(types))
	if out, err := exec.CommandContext(t.Context(), sdkScript, proxy.URL, dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", sdkScript, err, out)
	}

	if d := cmp.Diff(wants["readme"], in.runNode(t, dir, "readme", nil)); d != "" {
		t.Errorf("the README's program prints (-documented +got):\n%s", d)
	}
	deliver := func(address string) { in.deliver(t, address) }
	if d := cmp.Diff(wants["clients"], in.runNode(t, dir, "clients", deliver)); d != "" {
		t.Errorf("the program of docs/clients.md prints (-documented +got):\n%s", d)
	}
	logExchanges(t, in.check)
}

// wantNode skips the test where its packages are missing; in CI it fails.
func wantNode(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(typescript, "node_modules"))
	}
	if err == nil {
		return
	}
	if ci := os.Getenv("CI"); ci != "" && ci != "false" {
		t.Fatalf("`make test` brings the packages of %s: %v", typescript, err)
	}
	t.Skipf("`make test` brings the packages of %s: %v", typescript, err)
}

// runNode runs a compiled program to its end and returns what it prints. When
// deliver is given, the first line is an address, which it is called with.
func (in *install) runNode(t *testing.T, dir, name string, deliver func(address string)) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("out", name+".js"))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "POSTROOM_KEY="+firstKey)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if deliver != nil {
		if address, err := lines.ReadString('\n'); err == nil {
			deliver(strings.TrimSpace(address))
		}
	}
	printed, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &faults)
	}
	return string(printed)
}

// onlyBlock is the one code block of the page in that language.
func onlyBlock(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n```"+language+"\n")
	code, rest, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed || strings.Contains(rest, "\n```"+language+"\n") {
		t.Fatalf("%s must have one block of %s", page, language)
	}
	return code + "\n"
}

// wantMadeBy fails the test unless the command in the first line of a program, a
// comment, is what the script makes the program's client with.
func wantMadeBy(t *testing.T, page, code string) {
	t.Helper()
	script, err := os.ReadFile(sdkScript)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(code, "\n")
	command, ok := strings.CutPrefix(line, "// npx ")
	command = strings.ReplaceAll(command, documentedServer+"/openapi.json", `"$contract"`)
	if !ok || !strings.Contains(string(script), "\n"+"npx "+command+"\n") {
		t.Errorf("%s: %s does not make its client by %q", page, sdkScript, line)
	}
}

var outputLine = regexp.MustCompile(`(?m)^ *console\.log\(.*\); // prints: (.*)$`)

// saidOutput is what a program prints by its own account.
func saidOutput(code string) string {
	var b strings.Builder
	for _, m := range outputLine.FindAllStringSubmatch(code, -1) {
		b.WriteString(m[1] + "\n")
	}
	return b.String()
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
