// Package cli has the commands of postroom that call a server's API. They need
// only the server's URL and a key, and work from any machine.
package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// Program is the environment of the commands.
type Program struct {
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a terminal
	Interactive    bool // Stdin and Stdout are terminals
	Version        string
}

// GroupTitle introduces the commands of this package in the help.
const GroupTitle = "Use a server, local or remote (--" + serverFlag + " or " + ServerEnv + ", --" + keyFlag + " or " + KeyEnv + ", or a profile of login):"

// Commands returns the commands that call a server, without InboxCommands and
// DomainCommands.
func (p Program) Commands() []*cobra.Command {
	return []*cobra.Command{
		p.loginCommand(), p.logoutCommand(), p.messageCommand(), p.claimCommand(), p.waitCommand(), p.sendCommand(), p.replyCommand(), p.draftCommand(), p.eventsCommand(),
		p.emailCommand(), p.listCommand(), p.webhookCommand(), p.usageCommand(), p.stopCommand(), p.resumeCommand(),
		p.threadCommand(), p.statsCommand(), p.templateCommand(), p.contactCommand(), p.suppressionCommand(), p.listenCommand(), p.agentCommand(),
	}
}

// UsageError is an error in the command line or the settings.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// ErrTimedOut means that no message arrived during a wait.
var ErrTimedOut = errors.New("nothing came")

// interrupted reports whether err only means that the user stopped the command.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
