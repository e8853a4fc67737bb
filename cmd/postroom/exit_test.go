package main

import (
	"errors"
	"os/exec"
	"testing"
)

// The exit statuses are those in the table of `postroom --help`.
func TestExitStatusesMatchTheHelp(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	serve(t, data).stop(t)
	tests := []struct {
		name   string
		args   []string
		status int
	}{
		{"a key without a name", []string{"key", "create"}, exitUsage},
		{"an unknown scope", []string{"key", "create", "--name", "a", "--scopes", "all"}, exitUsage},
		{"an invalid setting", []string{"config", "--mx-port", "x"}, exitUsage},
		{"a user without a name", []string{"user", "create"}, exitUsage},
		{"an account without a name", []string{"account", "create"}, exitUsage},
		{"an unknown plan", []string{"account", "create", "--name", "a", "--of-plan", "gold"}, exitUsage},
		{"an unknown key", []string{"key", "revoke", "key_none"}, exitNotFound},
		{"keys of an unknown account", []string{"key", "list", "--account", "acc_none"}, exitNotFound},
		{"an unknown user", []string{"user", "reset", "missing"}, exitNotFound},
		{"an unknown account", []string{"account", "suspend", "acc_none"}, exitNotFound},
		{"an unknown inbox", []string{"inbox", "suspend", "ibx_none"}, exitNotFound},
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
