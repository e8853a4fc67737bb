package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const yesFlag = "yes"

var errNotConfirmed = errors.New("nothing was deleted")

// deletion returns a command that deletes what its argument names, as find finds it.
// what describes that, with %s for the argument.
func (p Program) deletion(use, short, what string, find lookup, call func(ctx context.Context, a *api, id string) (any, error)) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	return p.confirmed(cmd, what, find, func(ctx context.Context, a *api, id, what string) error {
		gone, err := call(ctx, a, id)
		return a.show(gone, err, func(t *table) { t.row("Deleted " + what + ".") })
	})
}

// confirmed turns cmd into a command that asks before it deletes what its argument names.
func (p Program) confirmed(cmd *cobra.Command, what string, find lookup, run func(ctx context.Context, a *api, id, what string) error) *cobra.Command {
	cmd.Flags().BoolP(yesFlag, "y", false, "do not ask for confirmation")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := find(a, ctx, args[0])
		if err != nil {
			return err
		}
		what := fmt.Sprintf(what, args[0])
		if err := p.confirm(cmd, what); err != nil {
			return err
		}
		return run(ctx, a, id, what)
	})
}

// confirm asks before something is deleted. Scripts are not asked: it asks only if
// input and output are a terminal.
func (p Program) confirm(cmd *cobra.Command, what string) error {
	if yes, err := cmd.Flags().GetBool(yesFlag); err != nil || yes || !p.Interactive {
		return err
	}
	ok, err := p.ask("Delete " + clean(what) + " permanently?")
	if err == nil && !ok {
		err = errNotConfirmed
	}
	return err
}

// ask asks a question and reports whether the user said yes.
func (p Program) ask(question string) (bool, error) {
	if _, err := fmt.Fprintf(p.Stderr, "%s [y/N] ", question); err != nil {
		return false, err
	}
	said, err := bufio.NewReader(p.Stdin).ReadString('\n')
	said = strings.ToLower(strings.TrimSpace(said))
	return said == "y" || said == "yes", ignoreEOF(err)
}

// ignoreEOF returns err, or nil if it only means that the input ended.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
