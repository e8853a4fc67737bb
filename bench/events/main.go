// Command events measures how events reach programs.
//
//	go run ./bench/events deliveries    to webhook endpoints on this machine
//	go run ./bench/events streams       to many open streams
//
// Each measurement starts a separate service on SQLite or, with -postgres, on the
// PostgreSQL server in POSTROOM_TEST_POSTGRES:
//
//	go run ./internal/testpg/cmd/withpg -fsync -- go run ./bench/events deliveries -postgres
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
)

// measures are the available measurements. Each parses the flags after its name.
var measures = map[string]func(ctx context.Context, args []string) error{
	"deliveries": measureDeliveries,
	"streams":    measureStreams,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && measures[args[0]] != nil {
		return measures[args[0]](ctx, args[1:])
	}
	return fmt.Errorf("name one of these measurements: %q", slices.Sorted(maps.Keys(measures)))
}
