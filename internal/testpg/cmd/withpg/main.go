//go:build unix

// Command withpg runs another command with a private PostgreSQL:
//
//	withpg [-fsync] -- go test ./...
//
// It passes the server's URL to the command in POSTROOM_TEST_POSTGRES. If that variable is
// already set, withpg does not start a server. It exits with the command's exit code,
// after it has stopped the server and removed its folder. With -find it only prints the
// folder of the server programs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/testpg"
)

const (
	addressVar  = "POSTROOM_TEST_POSTGRES"
	requiredVar = "POSTROOM_TEST_POSTGRES_REQUIRED"

	// grace is how long a command may run after a signal to end.
	grace = 10 * time.Second
	// failed is the exit code when withpg itself, not the command, failed.
	failed = 125
)

// endings are the signals that stop withpg, and so the command.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func main() {
	fsync := flag.Bool("fsync", false, "make the server as durable as in production")
	find := flag.Bool("find", false, "print the folder of the server programs and exit")
	flag.Parse()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings...)

	var code int
	var err error
	if *find {
		err = printFound()
	} else {
		code, err = serve(flag.Args(), testpg.Options{Fsync: *fsync}, signals)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		code = failed
	}
	os.Exit(code)
}

func printFound() error {
	bin, version, err := testpg.Find(context.Background())
	if err != nil {
		return err
	}
	fmt.Printf("PostgreSQL %d in %s\n", version, bin)
	return nil
}

// serve starts the server, runs the command, and stops the server in any case.
func serve(args []string, opts testpg.Options, signals <-chan os.Signal) (code int, err error) {
	if len(args) == 0 {
		return 0, errors.New("no command; use withpg -- command arguments")
	}
	if os.Getenv(addressVar) != "" {
		return run(args, os.Environ(), signals)
	}
	// A signal during the start ends it. A later one is still in the channel for the
	// command.
	ctx, cancel := signal.NotifyContext(context.Background(), endings...)
	defer cancel()
	server, err := testpg.Start(ctx, opts)
	if ctx.Err() != nil && err != nil {
		return 0, context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	env := append(os.Environ(), addressVar+"="+server.URL(testpg.DefaultDatabase), requiredVar+"=1")
	return run(args, env, signals)
}

// run runs the command in a new process group and forwards every signal to the whole
// group, because `go test` does not forward signals to its test binaries.
func run(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // signals end it, below
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	var late <-chan time.Time
	for {
		select {
		case s := <-signals:
			signalGroup(cmd, s.(syscall.Signal))
			late = time.After(grace)
		case <-late:
			signalGroup(cmd, syscall.SIGKILL)
		case err := <-done:
			return exitCode(err)
		}
	}
}

// signalGroup ignores the error: it fails only when all processes have ended.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }

// exitCode returns the command's exit code, or 128 plus the signal's number, as in a shell.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
