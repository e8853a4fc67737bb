package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/store"
)

// The exit statuses, which scripts go by.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2 // the command line or a setting is wrong: nothing was done
	exitNotFound = 3 // what the command names is not there
	exitTimedOut = 4 // nothing came while `postroom wait` waited
)

const exitHelp = `Exit status: 0 done, 1 failed, 2 the command line or a setting is wrong and nothing was done,
3 what the command names is not there, 4 nothing came while it waited.`

// usageError is of a command line, or of settings, that cannot be meant.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errTimedOut is of a wait in which nothing came.
var errTimedOut = errors.New("nothing came")

// exitStatus is what the program ends with after err.
func exitStatus(err error) int {
	_, usage := errors.AsType[usageError](err)
	switch {
	case err == nil:
		return exitOK
	case usage:
		return exitUsage
	case errors.Is(err, client.ErrNotFound), errors.Is(err, store.ErrNotFound):
		return exitNotFound
	case errors.Is(err, errTimedOut):
		return exitTimedOut
	}
	return exitFailed
}

// markUsageErrors makes what cobra finds wrong with the flags and arguments of a
// command, and of those below it, errors of usage.
func markUsageErrors(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(check(cmd, args), cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		markUsageErrors(below)
	}
}

// interrupted says whether err is only that somebody ended the command.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
