//go:build clients

package contract_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/store/storetest"
)

const typescriptSDK = "../sdk/typescript"

// runScript runs a shell script in dir and fails the test if the script fails.
func runScript(t *testing.T, dir, script string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// quickstart is the page with one program in several languages, which all print the
// same.
const (
	quickstart       = "../docs/quickstart.md"
	quickstartPrints = "The code is 482913"
)

// quickstartOf returns the program in a language.
func (in *install) quickstartOf(t *testing.T, language string) string {
	t.Helper()
	return strings.ReplaceAll(onlyBlock(t, quickstart, language), documentedServer, in.api)
}

// TestQuickstartWithCurl runs the commands of the quickstart, unchanged.
func TestQuickstartWithCurl(t *testing.T) {
	t.Parallel()
	in := start(t, storetest.SQLite, newChecker(t))
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", in.quickstartOf(t, "bash"))
	cmd.Env, cmd.Stderr = append(os.Environ(), "POSTROOM_KEY="+firstKey), t.Output()
	if out, err := cmd.Output(); err != nil || string(out) != quickstartPrints+"\n" {
		t.Errorf("printed %q: %v", out, err)
	}
}

// TestTypeScriptSDK builds the package with strict types, as a release does, installs it
// into an empty folder, and runs the package's tests there, against the program and
// against a server that fails on purpose.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	wantNode(t)
	in, r := start(t, storetest.SQLite, newChecker(t), sdkSettings...), startRestarting(t)
	empty := t.TempDir()
	runScript(t, "..", "scripts/sdk-packages npm 1.2.3-rc.1 '"+empty+"'")
	must(t, os.CopyFS(filepath.Join(empty, "test"), os.DirFS(filepath.Join(typescriptSDK, "test"))))
	writeFile(t, filepath.Join(empty, "quickstart.mjs"), in.quickstartOf(t, "js"))
	runScript(t, empty, `npm init -y && npm install --offline --no-audit --no-fund ./postroom-1.2.3-rc.1.tgz &&
		cmp node_modules/postroom/LICENSE "$LICENCE" && node --test test/*.test.mjs &&
		POSTROOM_URL=$RESTARTING_URL RESTART_URL=$RESTART node --test test/restart.test.mjs &&
		test "$(node quickstart.mjs)" = "`+quickstartPrints+`"`,
		"POSTROOM_URL="+in.api, "POSTROOM_KEY="+firstKey, "FLOWS="+sdkFlows(t), "RESTARTING_URL="+r.api, "RESTART="+r.control, "LICENCE="+licence(t))
}

// licence returns the path of the licence, which each package contains.
func licence(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../LICENSE")
	must(t, err)
	return path
}

// TestTypeScriptSDKIsGenerated checks that the generated files of the package match
// the contract.
func TestTypeScriptSDKIsGenerated(t *testing.T) {
	t.Parallel()
	wantNode(t)
	dir := t.TempDir()
	packages, err := filepath.Abs(filepath.Join(typescript, "node_modules"))
	must(t, err)
	contract, err := filepath.Abs("../gen")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(typescriptSDK, "generate.mjs"))
	must(t, err)
	home := filepath.Join(dir, "sdk", "typescript")
	must(t, os.MkdirAll(filepath.Join(home, "src"), 0o700))
	writeFile(t, filepath.Join(home, "generate.mjs"), string(text))
	runScript(t, dir, "ln -s '"+contract+"' gen && ln -s '"+packages+"' sdk/typescript/node_modules && node sdk/typescript/generate.mjs")
	for _, name := range []string{"schema.ts", "idempotent.ts", "resources.ts"} {
		sameFile(t, filepath.Join(typescriptSDK, "src", name), filepath.Join(home, "src", name))
	}
}

// sameFile fails the test unless a committed file equals the generated one.
func sameFile(t *testing.T, committed, made string) {
	t.Helper()
	want, err := os.ReadFile(made)
	must(t, err)
	if got, err := os.ReadFile(committed); err != nil || string(got) != string(want) {
		t.Errorf("%s does not match the contract; run make sdks (%v)", committed, err)
	}
}

const (
	pythonSDK = "../sdk/python"
	python    = "/usr/bin/python3"
)

// TestPythonSDK checks the package with strict types, builds it as a release does, installs
// its wheel into an empty folder, and runs the package's tests there, as TestTypeScriptSDK does. It also checks
// that the generated types match the contract.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), python, "-c", "import setuptools, wheel, mypy, pytest, pip").Run(); err != nil {
		skiptest.OutsideCI(t, "`make clients` installs mypy, pytest and setuptools: "+err.Error())
	}
	in, r := start(t, storetest.SQLite, newChecker(t), sdkSettings...), startRestarting(t)
	source, empty := t.TempDir(), t.TempDir()
	must(t, os.CopyFS(source, os.DirFS(pythonSDK)))
	contract, err := filepath.Abs("../gen/openapi.json")
	must(t, err)
	runScript(t, source, python+" generate.py '"+contract+"' src/postroom")
	for _, name := range []string{"_types.py", "_resources.py"} {
		sameFile(t, filepath.Join(pythonSDK, "src/postroom", name), filepath.Join(source, "src/postroom", name))
	}
	runScript(t, source, python+" -m mypy --strict src")
	runScript(t, "..", "scripts/sdk-packages pypi 1.2.3-rc.1 '"+empty+"'", "PYTHON="+python)
	writeFile(t, filepath.Join(empty, "quickstart.py"), in.quickstartOf(t, "python"))
	runScript(t, empty, `ls postroom-1.2.3rc1.tar.gz && `+python+` -m pip install -q --no-index --no-deps --target site postroom-1.2.3rc1-*.whl &&
		cmp "$(find site -name LICENSE)" "$LICENCE" && cp -r '`+source+`/tests' . && `+
		python+` -m pytest -q tests &&
		POSTROOM_URL=$RESTARTING_URL RESTART_URL=$RESTART `+python+` -m pytest -q tests/test_restart.py && test "$(`+python+` quickstart.py)" = "`+quickstartPrints+`"`,
		"PYTHONPATH=site", "POSTROOM_URL="+in.api, "POSTROOM_KEY="+firstKey, "FLOWS="+sdkFlows(t), "RESTARTING_URL="+r.api, "RESTART="+r.control, "LICENCE="+licence(t))
}
