// Command postroom is the mail service for programs: an HTTP API, an SMTP
// server that receives, a queue that sends, on SQLite or PostgreSQL.
//
// `postroom serve` runs until SIGTERM or SIGINT and then finishes what is in
// flight, in at most 30 seconds; a second signal ends it at once. It exits with
// 0 only when every part stopped as it should. The other commands look at an
// install or change it, also while it serves; or they call a server by its API,
// from any machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one has its usual effect.
	context.AfterFunc(ctx, stop)
	cmd := newCommand(program{
		environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, terminal: isatty.IsTerminal(os.Stdout.Fd()),
	})
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "postroom: %v\n", err)
	}
	return exitStatus(err)
}
