// Command postroom is the mail service for programs: an HTTP API, an SMTP server
// for inbound mail, and a delivery queue, on SQLite or PostgreSQL.
//
// `postroom serve` runs until SIGTERM or SIGINT. It then finishes running work
// within 30 seconds; a second signal ends it at once. The exit status is 0 only
// if every part stopped cleanly. The other commands inspect or change an
// installation, even while it serves, or call a server's API from any machine.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/mattn/go-isatty"

	"github.com/postroom/postroom/internal/cli"
)

// interrupted is the exit status after a second signal, as shells report SIGINT.
const interrupted = 130

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		stop(fmt.Errorf("%v signal received", <-signals))
		<-signals // however soon it comes
		os.Exit(interrupted)
	}()
	cmd := newCommand(program{Program: cli.Program{
		Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: isatty.IsTerminal(os.Stdout.Fd()), Interactive: isatty.IsTerminal(os.Stdout.Fd()) && isatty.IsTerminal(os.Stdin.Fd()),
		Version: programVersion(),
	}, service: installed(os.Args[1:])})
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "postroom: %v\n", err)
	}
	return exitStatus(err)
}

// version is set by the linker; see the Makefile.
var version string

// programVersion returns the version of the build, as far as it is known.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if version != "" || !ok || info.Main.Version == "(devel)" {
		return cmp.Or(version, "dev")
	}
	return cmp.Or(info.Main.Version, "dev")
}
