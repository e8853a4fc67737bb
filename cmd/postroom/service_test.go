package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/cli"
)

// A command runs as the user of the service that a package installed, with its settings,
// unless the caller names another installation.
func TestCommandsFindTheInstalledService(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-run"); err != nil {
		t.Skip("systemd is not installed")
	}
	settings := filepath.Join(t.TempDir(), "postroom.env")
	if err := os.WriteFile(settings, []byte("POSTROOM_MAIL_DOMAIN=agents.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	took := errors.New("took")
	run := func(file string, environ []string, args ...string) (became []string, stderr string) {
		var out bytes.Buffer
		cmd := newCommand(program{
			Program: cli.Program{Environ: environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Version: "test"},
			service: service{settings: file, args: args, become: func(_ string, args, _ []string) error {
				became = args
				return took
			}},
		})
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(context.Background()); errors.Is(err, took) != (became != nil) {
			t.Errorf("%v: %v", args, err)
		}
		return became, out.String()
	}
	for _, args := range [][]string{{"key", "list"}, {"doctor"}, {"domain", "show"}, {"config"}, {"user", "list"}} {
		got, stderr := run(settings, nil, args...)
		if !slices.Contains(got, "EnvironmentFile="+settings) || !slices.Equal(got[len(got)-len(args):], args) || !strings.Contains(stderr, "for the installed service") {
			t.Errorf("%v became %v, and said %q", args, got, stderr)
		}
	}
	if got, _ := run(settings, nil, "key", "list"); !slices.Contains(got, "DynamicUser=yes") {
		t.Errorf("key list became %v", got)
	}
	if got, _ := run(settings, nil, "backup", "/tmp/$x"); slices.Contains(got, "DynamicUser=yes") || got[len(got)-1] != "/tmp/$$x" {
		t.Errorf("backup became %v", got)
	}
	if got, _ := run(settings, []string{"POSTROOM_DATA=" + t.TempDir()}, "config"); got != nil {
		t.Errorf("with another folder in the environment, config became %v", got)
	}
	if got, _ := run(settings, nil, "config", "--data", t.TempDir()); got != nil {
		t.Errorf("with another folder, config became %v", got)
	}
	if got, _ := run(filepath.Join(t.TempDir(), "none"), nil, "config"); got != nil {
		t.Errorf("without a service, config became %v", got)
	}
}
