package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) threadCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "thread", Short: "List, show and label threads"}, p.threadListCommand(), p.threadGetCommand(), p.threadMarkCommand())
}

func (p Program) threadListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list INBOX", Short: "List the threads of an inbox, latest activity first"}
	label := cmd.Flags().String("label", "", "only with this label")
	limit := limitFlag(cmd)
	return p.named(cmd, (*api).inboxID, func(ctx context.Context, a *api, id string) error {
		params := gen.ListThreadsParams{InboxID: id, Limit: pageOf(*limit)}
		given(&params.Label, gen.Label(*label))
		all := a.Threads(ctx, params)
		return showList(a.output, all, *limit, []string{"ID", "LAST MESSAGE", "MESSAGES", "PARTICIPANTS", "SUBJECT"}, func(t gen.Thread) []string {
			return []string{t.ID, when(t.LastMessageAt), fmt.Sprint(t.MessageCount), short(strings.Join(t.Participants, ", "), 40), short(t.Subject, 60)}
		})
	})
}

func (p Program) threadGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get INBOX THREAD", Short: "Show a thread with its messages, oldest first"}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		id, err := a.inboxID(ctx, args[0])
		if err != nil {
			return err
		}
		thread, err := a.GetThread(ctx, gen.GetThreadParams{InboxID: id, ThreadID: args[1]})
		return a.show(thread, err, func(t *table) {
			var said strings.Builder
			for _, m := range thread.Messages {
				fmt.Fprintf(&said, "%s  %s  %s\n%s\n\n", m.ID, when(m.CreatedAt), mailbox(m.From.Value), m.ExtractedText.Or(m.Text.Or("")))
			}
			t.row("ID", thread.ID)
			t.row("Subject", thread.Subject)
			t.row("Participants", strings.Join(thread.Participants, ", "))
			t.text(said.String())
		})
	})
}

func (p Program) statsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "stats", Short: "Show what was received, sent and delivered on each day"}
	days := cmd.Flags().Int("days", 14, "number of UTC days, including today, up to 90")
	inbox := cmd.Flags().String("inbox", "", "only of this inbox, by ID or address")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		id, err := a.inboxID(ctx, *inbox)
		if err != nil {
			return err
		}
		stats, err := a.GetStats(ctx, gen.GetStatsParams{Days: gen.NewOptInt(*days), InboxID: opt(id)})
		return a.show(stats, err, func(t *table) {
			row := func(name string, c gen.StatsCounts) {
				cells := []string{name}
				for _, n := range []int{c.Received, c.Sent, c.Delivered, c.Bounced, c.Failed, c.Complained} {
					cells = append(cells, fmt.Sprint(n))
				}
				t.row(cells...)
			}
			t.row("DAY", "RECEIVED", "SENT", "DELIVERED", "BOUNCED", "FAILED", "COMPLAINED")
			for _, d := range stats.Days {
				row(d.Date.Format("2006-01-02"), gen.StatsCounts{
					Received: d.Received, Sent: d.Sent, Delivered: d.Delivered, Bounced: d.Bounced, Failed: d.Failed, Complained: d.Complained,
				})
			}
			row("total", stats.Totals)
		})
	})
}
