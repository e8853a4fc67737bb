package main

import (
	"errors"
	"os/exec"
	"testing"
)

// TestCommandsOnAnInstallEndAsTheHelpSays by the table of `postroom --help`.
func TestCommandsOnAnInstallEndAsTheHelpSays(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve(t, data).stop(t)
	tests := []struct {
		name   string
		args   []string
		status int
	}{
		{"a key without a name", []string{"key", "create"}, exitUsage},
		{"a scope that is none", []string{"key", "create", "--name", "a", "--scopes", "all"}, exitUsage},
		{"a setting that is none", []string{"config", "--mx-port", "x"}, exitUsage},
		{"a user without a name", []string{"user", "create"}, exitUsage},
		{"an account without a name", []string{"account", "create"}, exitUsage},
		{"a plan that is none", []string{"account", "create", "--name", "a", "--of-plan", "gold"}, exitUsage},
		{"a key that is not there", []string{"key", "revoke", "key_none"}, exitNotFound},
		{"keys of an account that is not there", []string{"key", "list", "--account", "acc_none"}, exitNotFound},
		{"a user who is not there", []string{"user", "reset", "nobody"}, exitNotFound},
		{"an account that is not there", []string{"account", "suspend", "acc_none"}, exitNotFound},
		{"an inbox that is not there", []string{"inbox", "suspend", "ibx_none"}, exitNotFound},
		{"a key with a name", []string{"key", "create", "--name", "a"}, exitOK},
	}
	for _, tt := range tests {
		status := exitOK
		_, said, err := runCommand(t, data, nil, tt.args...)
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			status = e.ExitCode()
		}
		if status != tt.status {
			t.Errorf("%s: it ends with %d, want %d: %s", tt.name, status, tt.status, said)
		}
	}
}
