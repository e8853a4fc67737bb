package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/internal/cli"
	"github.com/postroom/postroom/store"
)

// Exit statuses, for scripts.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2 // invalid command line or settings; nothing was done
	exitNotFound = 3 // the named object does not exist
	exitTimedOut = 4 // `postroom wait` timed out
)

const exitHelp = `Exit status: 0 done, 1 failed, 2 the command line or a setting is wrong and nothing was done,
3 what the command names is not there, 4 nothing came while it waited.`

func exitStatus(err error) int {
	_, usage := errors.AsType[cli.UsageError](err)
	switch {
	case err == nil:
		return exitOK
	case usage:
		return exitUsage
	case errors.Is(err, client.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return exitNotFound
	case errors.Is(err, cli.ErrTimedOut):
		return exitTimedOut
	}
	return exitFailed
}

// markUsageErrors turns cobra's flag and argument errors of a command and its
// subcommands into usage errors.
func markUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.UsageError{Err: err} })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(check(cmd, args), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return cli.UsageError{Err: err}
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		markUsageErrors(below)
	}
}
