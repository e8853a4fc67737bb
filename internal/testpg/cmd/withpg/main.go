//go:build unix

// Command withpg runs another command beside a private PostgreSQL:
//
//	withpg [-fsync] -- go test ./...
//
// The command finds the server's address in POSTROOM_TEST_POSTGRES. If that
// is set already, no server is started. withpg ends with the command's exit
// code, after the server is stopped and its folder removed. With -find it only
// prints where the server programs are.
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

	// grace is how long a command may go on after it was told to end.
	grace = 10 * time.Second
	// failed is the exit code when withpg itself, not the command, failed.
	failed = 125
)

// endings are the signals that ask us, and so the command, to end.
var endings = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func main() {
	fsync := flag.Bool("fsync", false, "make the server as durable as in production")
	find := flag.Bool("find", false, "print the folder of the server programs and end")
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

// serve starts the server, runs the command, and stops the server whatever
// became of the command.
func serve(args []string, opts testpg.Options, signals <-chan os.Signal) (code int, err error) {
	if len(args) == 0 {
		return 0, errors.New("no command; use withpg -- command arguments")
	}
	if os.Getenv(addressVar) != "" {
		return run(args, os.Environ(), signals)
	}
	// A signal during the start ends it; one that comes later is still in the
	// channel for the command.
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

// run runs the command in a process group of its own and hands every signal
// on to the whole group: `go test` does not tell its test binaries to end.
func run(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ended by signals, below
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
			tell(cmd, s.(syscall.Signal))
			late = time.After(grace)
		case <-late:
			tell(cmd, syscall.SIGKILL)
		case err := <-done:
			return exitCode(err)
		}
	}
}

// tell ignores the error: the only one there can be is that all have ended.
func tell(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }

// exitCode is the command's, or 128 and the signal's number, as in a shell.
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
