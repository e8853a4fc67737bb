//go:build clients

package client_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const programModule = `module example.com/program

go 1.26

require github.com/postroom/postroom v0.0.0

replace github.com/postroom/postroom => ROOT
`

const programSource = `package main

import "github.com/postroom/postroom/client"

func main() {
	if _, err := client.New("http://127.0.0.1:8080", "sk_live_1"); err != nil {
		panic(err)
	}
}
`

// clientRequires lists our direct requirements that the client needs. ogen
// requires the last one.
var clientRequires = []string{"github.com/go-faster/errors", "github.com/go-faster/jx", "github.com/ogen-go/ogen", "github.com/mattn/go-isatty"}

// A program that uses the client builds in its own module. Neither the program
// nor its go.mod contains any part of the server.
func TestProgramsContainNoPartOfTheServer(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": strings.Replace(programModule, "ROOT", root, 1), "go.sum": string(sums), "main.go": programSource} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ofServer := directRequires(t, root)
	if !slices.Contains(ofServer, "modernc.org/sqlite") || !slices.Contains(ofServer, "github.com/minio/minio-go/v7") {
		t.Fatalf("the server's requirements are %q", ofServer)
	}
	ofServer = slices.DeleteFunc(ofServer, func(m string) bool {
		return slices.Contains(clientRequires, m) || strings.HasPrefix(m, "golang.org/x/")
	})

	goCommand(t, dir, "build", "-buildvcs=false", "-o", filepath.Join(dir, "program"), ".")
	for line := range strings.Lines(goCommand(t, dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", ".")) {
		module, pkg, _ := strings.Cut(strings.TrimSpace(line), " ")
		below, ours := strings.CutPrefix(pkg, "github.com/postroom/postroom/")
		if ours && below != "client" && below != "gen" || slices.Contains(ofServer, module) {
			t.Errorf("the program contains %s", pkg)
		}
	}
	for _, module := range directRequires(t, dir) {
		if slices.Contains(ofServer, module) {
			t.Errorf("the go.mod of the program requires %s", module)
		}
	}
}

// directRequires returns the direct requirements of one of our modules, or all
// of a program's.
func directRequires(t *testing.T, dir string) []string {
	t.Helper()
	var mod struct {
		Module  struct{ Path string }
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goCommand(t, dir, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, r := range mod.Require {
		if !r.Indirect || mod.Module.Path == "example.com/program" {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// goCommand runs the go command outside of any workspace.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
