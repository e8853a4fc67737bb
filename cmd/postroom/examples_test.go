//go:build clients

package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postroom/postroom/internal/skiptest"
)

// examples are the programs in examples/ that run here. The command may use the modules of
// other folders, and prints a text.
var examples = []struct{ folder, modules, run, prints string }{
	{"node", "testdata/submit/node_modules", "node --test", "pass 1\n"},
	{"python", "", "python3 -m unittest", "OK\n"},
	{"mcp-agent", "../../contract/testdata/mcp/node_modules", "node agent.mjs", "connected\nThe code is 482913\n"},
	{"playwright", exampleModules, "CHROMIUM=$(command -v chromium) node_modules/.bin/playwright test", "1 passed"},
	{"vitest", exampleModules, "node_modules/.bin/vitest run", "1 passed"},
	{"nextjs", exampleModules, "node --test signup.test.mjs", "pass 1\n"},
	{"langchain", exampleModules, "node agent.mjs", "The code is 482913\n"},
	{"openai-agents", exampleModules, "node agent.mjs", "The code is 482913\n"},
	{"pytest", "", "/usr/bin/python3 -m pytest -q -p postroom.pytest_plugin", "1 passed"},
	{"django", "", "/usr/bin/python3 test_signup.py", "OK\n"},
	{"rails", "", "ruby signup_test.rb", "1 runs, 1 assertions, 0 failures"},
	// These need what the tests do not have: their programs are read.
	{"cypress", "", "node --check cypress.config.mjs && node --check cypress/e2e/signup.cy.js && echo read", "read\n"},
	{"laravel", "", "php -l SignUpTest.php", "No syntax errors"},
	{"testcontainers", "", "node --check signup.test.mjs && gofmt -e go/signup_test.go >go.out && echo read", "read\n"},
}

// exampleModules are packages of npm that only the examples use.
const exampleModules = "testdata/examples/node_modules"

// TestExamples runs the programs in examples/ against `postroom dev`, each in a copy of its
// folder, and reads the files of those that need a container engine.
func TestExamples(t *testing.T) {
	t.Parallel()
	postroom := builtPackage(t)
	for _, tt := range examples {
		t.Run(tt.folder, func(t *testing.T) {
			t.Parallel()
			s := dev(t)
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../examples/"+tt.folder)); err != nil {
				t.Fatal(err)
			}
			if tt.modules != "" {
				linkModules(t, dir, tt.modules, postroom)
			}
			host, port, _ := strings.Cut(s.submission, ":")
			python, err := filepath.Abs("../../sdk/python/src")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tt.run+" 2>&1")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "POSTROOM_URL="+s.api, "POSTROOM_KEY=dev", "SMTP_HOST="+host, "SMTP_PORT="+port,
				"PORT="+freePort(t), "PYTHONPATH="+python, "NEXT_TELEMETRY_DISABLED=1", "NO_COLOR=1")
			out, err := cmd.Output()
			if err != nil || !bytes.Contains(out, []byte(tt.prints)) {
				t.Errorf("%v, want %q in\n%s\nlog:\n%s", err, tt.prints, out, s.log)
			}
		})
	}
	for _, file := range []string{"compose/compose.yaml", "github-actions/test.yml"} {
		var got struct {
			Services map[string]struct{ Image, Command string }
			Jobs     map[string]struct {
				Services map[string]struct{ Image, Command string }
			}
		}
		if err := yaml.Unmarshal([]byte(readFile(t, "../../examples/"+file)), &got); err != nil {
			t.Fatal(err)
		}
		services := got.Services
		if services == nil {
			services = got.Jobs["test"].Services
		}
		if s := services["mail"]; s.Image != "ghcr.io/postroom/postroom" || s.Command != "dev" {
			t.Errorf("%s: %+v", file, s)
		}
	}
}

// builtPackage builds the TypeScript client and returns its folder.
func builtPackage(t *testing.T) string {
	t.Helper()
	compiler, err := filepath.Abs("../../contract/testdata/typescript/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(compiler); err != nil {
		skiptest.OutsideCI(t, "contract/testdata/typescript/node_modules is not there")
	}
	dir := t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json", "tsconfig.cjs.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(readFile(t, "../../sdk/typescript/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.CopyFS(filepath.Join(dir, "src"), os.DirFS("../../sdk/typescript/src")), os.Symlink(compiler, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "run", "build")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// linkModules makes a folder node_modules with links to the packages of modules and to the
// TypeScript client.
func linkModules(t *testing.T, dir, modules, postroom string) {
	t.Helper()
	from, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		skiptest.OutsideCI(t, modules+" is not there")
	}
	to := filepath.Join(dir, "node_modules")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(to, 0o700))
	for _, e := range entries {
		must(os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	must(os.Symlink(postroom, filepath.Join(to, "postroom")))
}

// freePort returns a port that nothing uses, as a setting.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	return port
}
