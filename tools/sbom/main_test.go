package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testprogram"
)

// TestEveryModuleIsListed compares the list of the modules of Postroom with what Go
// says of it.
func TestEveryModuleIsListed(t *testing.T) {
	t.Parallel()
	program, err := testprogram.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "test.cdx.json")
	if err := write(program, output); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	listed, want := map[string]string{}, map[string]string{"std": info.GoVersion}
	for _, c := range doc.Components {
		listed[c.Name] = c.Version
	}
	for _, m := range info.Deps {
		want[m.Path] = m.Version
	}
	if _, ok := want["github.com/lib/pq"]; !ok {
		t.Fatal("the program does not list a module that it uses")
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Error(diff)
	}
}

func TestAFileThatIsNoGoProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(file, file+".json"); err == nil {
		t.Error("no error for a text file")
	}
	if _, err := os.Stat(file + ".json"); err == nil {
		t.Error("a list was written for a text file")
	}
}
