//go:build clients

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postroom/postroom/internal/skiptest"
)

// TestExamples runs the programs in examples/ against `postroom dev`, each in a copy of its
// folder, and reads the files of those that need a container engine.
func TestExamples(t *testing.T) {
	t.Parallel()
	const (
		nodemailer = "testdata/submit/node_modules"
		mcpClient  = "../../contract/testdata/mcp/node_modules"
	)
	for _, tt := range []struct{ folder, modules, run, prints string }{
		{"node", nodemailer, "node --test", "pass 1\n"},
		{"python", "", "python3 -m unittest", "OK\n"},
		{"mcp-agent", mcpClient, "node agent.mjs", "connected\nThe code is 482913\n"},
	} {
		t.Run(tt.folder, func(t *testing.T) {
			t.Parallel()
			if program, _, _ := strings.Cut(tt.run, " "); !installed(program) {
				skiptest.OutsideCI(t, program+" is not installed")
			}
			s := dev(t)
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../examples/"+tt.folder)); err != nil {
				t.Fatal(err)
			}
			if tt.modules != "" {
				modules, err := filepath.Abs(tt.modules)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(modules); err != nil {
					skiptest.OutsideCI(t, tt.modules+" is not there")
				}
				if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			host, port, _ := strings.Cut(s.submission, ":")
			python, err := filepath.Abs("../../sdk/python/src")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tt.run+" 2>&1")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "POSTROOM_URL="+s.api, "SMTP_HOST="+host, "SMTP_PORT="+port, "PYTHONPATH="+python)
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

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
