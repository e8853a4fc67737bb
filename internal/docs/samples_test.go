//go:build clients

package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/skiptest"
)

// TestGoSamplesCompile compiles the Go example of every operation.
func TestGoSamplesCompile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\t\"os\"\n\n" +
		"\t\"github.com/postroom/postroom/client\"\n\t\"github.com/postroom/postroom/gen\"\n)\n\nvar _ = json.Valid\n\nfunc main() {}\n")
	for i, code := range samples(t, "go") {
		fmt.Fprintf(&b, "\nfunc f%d(ctx context.Context) error {\n%s\n_ = response\nreturn err\n}\n", i, code)
	}
	dir := folder(t)
	write(t, filepath.Join(dir, "main.go"), b.String())
	run(t, "go", "build", "-o", os.DevNull, "./"+dir)
}

// TestTypeScriptSamplesCompile checks the types of the TypeScript examples.
func TestTypeScriptSamplesCompile(t *testing.T) {
	t.Parallel()
	const modules = "../../contract/testdata/typescript/node_modules"
	if _, err := os.Stat(modules); err != nil {
		skiptest.OutsideCI(t, "make clients installs the TypeScript compiler")
	}
	dir := folder(t)
	for i, code := range samples(t, "ts") {
		write(t, filepath.Join(dir, fmt.Sprintf("sample%d.ts", i)), code+"\nexport { response };\n")
	}
	write(t, filepath.Join(dir, "tsconfig.json"), `{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "target": "es2022",
		"module": "esnext", "moduleResolution": "bundler", "lib": ["es2022", "dom", "dom.iterable"], "types": [],
		"paths": {"postroom": ["../../../sdk/typescript/src/index.ts"]}}, "include": ["*.ts"]}`)
	run(t, "node", modules+"/typescript/bin/tsc", "-p", dir)
}

// TestPythonSamplesCompile checks the syntax of the Python examples.
func TestPythonSamplesCompile(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		skiptest.OutsideCI(t, err.Error())
	}
	all := strings.Join(samples(t, "python"), "\n\n")
	dir := folder(t)
	write(t, filepath.Join(dir, "samples.py"), all)
	run(t, python, "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", filepath.Join(dir, "samples.py"))
}

// samples returns the examples in a language.
func samples(t *testing.T, language string) (code []string) {
	t.Helper()
	s, err := newSite(gen.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.pages {
		for _, sample := range p.Samples {
			if sample.Language == language {
				code = append(code, sample.Code)
			}
		}
	}
	if len(code) < 70 {
		t.Fatalf("%d operations have an example in %s", len(code), language)
	}
	return code
}

// folder makes a folder that exists until the end of the test.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "testdata-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil { //nolint:gosec // the compilers
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}
