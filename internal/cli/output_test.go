package cli

import (
	"errors"
	"strings"
	"testing"
)

func TestBytesAreNotWrittenToATerminal(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	o := output{w: &shown, terminal: true}
	for _, name := range []string{"", "-"} {
		err := o.save(name, strings.NewReader("\x1b"))
		if _, ok := errors.AsType[UsageError](err); !ok || shown.Len() != 0 {
			t.Errorf("%v, and %q is shown", err, shown.String())
		}
	}
}
