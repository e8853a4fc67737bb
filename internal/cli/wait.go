package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) waitCommand() *cobra.Command {
	var (
		w    client.Wait
		code codeWait
	)
	cmd := &cobra.Command{
		Use:   "wait INBOX",
		Short: "Wait for a message and show it or its verification code",
		Long: "Wait for a message in an inbox, by ID or address, and show it. A message of the last minute\n" +
			"counts too. With --code, print only the newest verification code. Each code is\n" +
			"printed once: after you asked for a second code, run the command again. --again prints it again.",
		Example: "  postroom wait signup@mail.example.com --code --from '*@shop.example'\n  postroom wait ibx_01k5 --timeout 10m --json",
	}
	cmd.Flags().BoolVar(&code.only, "code", false, "wait for a message with a verification code, and print only the code")
	cmd.Flags().BoolVar(&code.again, "again", false, "with --code, print a code also if an earlier command printed it")
	cmd.Flags().StringVar(&w.From, "from", "", "only from this address, or *@domain")
	cmd.Flags().StringVar(&w.Subject, "subject", "", "only with this text in the subject")
	has := choose(cmd, "has", "only with one of these", "", w.Has.AllValues())
	direction := choose(cmd, "direction", "received (default) or sent", "", w.Direction.AllValues())
	since := momentFlag(cmd, "since", "only since this time, or this long ago (default: 1m)")
	cmd.Flags().StringVar(&w.After, "after", "", "only after this message, by ID")
	timeout := spanFlag(cmd, "timeout", time.Minute, "how long to wait; 0 waits forever")
	cmd.MarkFlagsMutuallyExclusive("code", "has")
	return p.named(cmd, (*api).inboxID, func(ctx context.Context, a *api, id string) error {
		w.Has, w.Direction, w.Since = *has, *direction, *since
		limited, cancel := ctx, context.CancelFunc(func() {})
		if *timeout > 0 {
			limited, cancel = context.WithTimeout(ctx, *timeout)
		}
		defer cancel()
		err := a.wait(limited, id, w, code)
		if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
			text := fmt.Sprintf("no message arrived within %v", *timeout)
			if e, ok := errors.AsType[*client.WaitTimeout](err); ok && e.Older > 0 {
				text += fmt.Sprintf("; %s from before %s matched, the newest of %s: pass --since %[3]s to include it", Counted(e.Older, "older message"),
					e.Since.Format(time.RFC3339), e.Newest.Format(time.RFC3339Nano))
			}
			return &Explained{text, ErrTimedOut}
		}
		return err
	})
}

// codeWait holds the flags about codes.
type codeWait struct{ only, again bool }

func (a *api) wait(ctx context.Context, inboxID string, w client.Wait, code codeWait) error {
	if code.only {
		return a.waitForCode(ctx, inboxID, w, code.again)
	}
	m, err := a.WaitForMessage(ctx, inboxID, w)
	return a.show(m, err, func(t *table) { showMessage(t, m, m.Text.Or("")) })
}

// waitForCode prints a code. It remembers the message in a file of the user, so
// that the next command prints the next code.
func (a *api) waitForCode(ctx context.Context, inboxID string, w client.Wait, again bool) error {
	seen := shownCodes()
	if !again {
		a.SkipCodes(seen...)
	}
	code, err := a.WaitForReceivedCode(ctx, inboxID, w)
	if err != nil {
		return err
	}
	if err := a.show(codeShown{code.Otp.Value, code}, nil, func(t *table) { t.row(code.Otp.Value) }); err != nil {
		return err
	}
	rememberCode(seen, code.MessageID)
	return nil
}

// codeShown is the output with --json.
type codeShown struct {
	Code   string            `json:"code"`
	Result *gen.ReceivedCode `json:"result"`
}

// maxShownCodes is how many messages the file holds.
const maxShownCodes = 500

// codesFile returns the file with the messages whose codes were printed, or "" if
// the user has no cache folder.
func codesFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "postroom", "codes")
}

func shownCodes() []string {
	b, _ := os.ReadFile(codesFile()) // without the file, nothing was shown
	return strings.Fields(string(b))
}

// rememberCode adds a message to the file. Without the file the next command may
// print the same code, which is better than to fail after the code was printed.
func rememberCode(seen []string, id string) {
	path := codesFile()
	if path == "" || slices.Contains(seen, id) {
		return
	}
	seen = append(seen[max(0, len(seen)-maxShownCodes+1):], id)
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = os.WriteFile(path, []byte(strings.Join(seen, "\n")+"\n"), 0o600)
	}
}

func (p Program) eventsCommand() *cobra.Command {
	var s client.Stream
	cmd := &cobra.Command{
		Use:     "events",
		Short:   "Follow what happens, until it is interrupted",
		Example: "  postroom events\n  postroom events --types message.received,email.bounced --json | jq .data.subject",
	}
	read := streamFlags(cmd, &s, "in this inbox, by id or address", "of these types, separated by commas")
	since := momentFlag(cmd, "since", "list what happened since this time, or this long ago, up to 30 days, and end")
	cmd.Flags().StringVar(&s.LastEventID, "after", "", "since this event, by id, of the last 24 hours")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		if err := read(ctx, a); err != nil {
			return err
		}
		events := a.Events(ctx, s)
		if !since.IsZero() {
			events = a.EventLog(ctx, s, *since)
		}
		for e, err := range events {
			if err != nil && interrupted(ctx, err) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := a.showEvent(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// streamFlags adds the flags --inbox and --types. The function that it returns reads them
// into s.
func streamFlags(cmd *cobra.Command, s *client.Stream, ofInbox, ofTypes string) (read func(context.Context, *api) error) {
	inbox := cmd.Flags().String("inbox", "", ofInbox)
	types := cmd.Flags().StringSlice("types", nil, ofTypes)
	complete(cmd, "types", gen.EventType("").AllValues())
	return func(ctx context.Context, a *api) (err error) {
		for _, t := range *types {
			s.Types = append(s.Types, gen.EventType(t))
		}
		s.InboxID, err = a.inboxID(ctx, *inbox)
		return err
	}
}

func (a *api) showEvent(e client.Event) error {
	if a.json {
		return a.writeJSON(e.JSON)
	}
	if e.Type == client.StreamGap {
		_, err := fmt.Fprintln(a.w, "Older events are lost: the server keeps events for 24 hours.")
		return err
	}
	var about struct{ ID, Subject, Domain, Status string }
	if err := e.Decode(&about); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.w, "%s  %-22s  %s  %s\n", when(e.CreatedAt), clean(e.Type), clean(about.ID), clean(short(about.Subject+about.Domain+ofRecipient(e), 100)))
	return err
}

func ofRecipient(e client.Event) string {
	if r := e.Recipient(); r != "" {
		return " (" + r + ")"
	}
	return ""
}
