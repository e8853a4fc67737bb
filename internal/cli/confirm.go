package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const yesFlag = "yes"

// deletes adds the flag that skips the question before a deletion.
func deletes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolP(yesFlag, "y", false, "do not ask for confirmation")
	return cmd
}

var errNotConfirmed = errors.New("nothing was deleted")

// confirm asks before something is deleted. Scripts are not asked: it asks only if
// input and output are a terminal.
func (p Program) confirm(cmd *cobra.Command, what string) error {
	if yes, err := cmd.Flags().GetBool(yesFlag); err != nil || yes || !p.Interactive {
		return err
	}
	if _, err := fmt.Fprintf(p.Stderr, "Delete %s permanently? [y/N] ", clean(what)); err != nil {
		return err
	}
	said, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err := ignoreEOF(err); err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(said)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// ignoreEOF returns err, or nil if it only means that the input ended.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
