//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
)

func TestRun(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		args    []string
		signals []os.Signal
		want    int
		fails   string
	}{
		{name: "success", args: []string{"true"}, want: 0},
		{name: "the command's exit code", args: []string{"sh", "-c", "exit 7"}, want: 7},
		{name: "a command that kills itself", args: []string{"sh", "-c", "kill -KILL $$"}, want: 128 + 9},
		{name: "a signal is forwarded to the command", args: []string{"sleep", "300"}, signals: []os.Signal{syscall.SIGTERM}, want: 128 + 15},
		{
			// A surviving child would keep this test's output open, and fail the test.
			name: "and to the command's own children", signals: []os.Signal{syscall.SIGTERM},
			args: []string{"sh", "-c", "sleep 300 & wait"}, want: 128 + 15,
		},
		{name: "a command that does not exist", args: []string{"/nonexistent/command"}, fails: "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			signals := make(chan os.Signal, 1)
			for _, s := range tt.signals {
				signals <- s
			}
			got, err := run(tt.args, os.Environ(), signals)
			if got != tt.want || (err != nil) != (tt.fails != "") {
				t.Fatalf("run = %d, %v; want %d", got, err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want one with %q", err, tt.fails)
			}
		})
	}
}

func TestCommandIsRequired(t *testing.T) {
	t.Parallel()
	if _, err := serve(nil, testpg.Options{}, nil); err == nil {
		t.Error("no error")
	}
}
