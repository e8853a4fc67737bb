package cli

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) emailCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "email", Short: "List emails of /v1/emails, and show their delivery status"},
		p.emailListCommand(), p.emailGetCommand())
}

func (p Program) emailListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List emails, newest first"}
	status := choose(cmd, "status", "only with this status", "", gen.EmailStatus("").AllValues())
	tag := cmd.Flags().String("tag", "", "only with this tag, as key:value")
	batch := cmd.Flags().String("batch", "", "only of this batch, by ID")
	return listing(p, cmd, []string{"ID", "TIME", "STATUS", "FROM", "TO", "SUBJECT"}, func(m gen.Email) []string {
		return []string{m.ID, when(m.CreatedAt), m.Status, short(m.From, 40), short(strings.Join(m.To, ", "), 40), short(m.Subject, 60)}
	}, func(ctx context.Context, a *api, page gen.OptInt) iter.Seq2[gen.Email, error] {
		params := gen.ListEmailsParams{Limit: page, Tag: opt(*tag), BatchID: opt(*batch)}
		given(&params.Status, *status)
		return a.Emails(ctx, params)
	})
}

func (p Program) emailGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get EMAIL", Short: "Show an email and its delivery status"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		m, err := a.GetEmail(ctx, gen.GetEmailParams{ID: id})
		return a.show(m, err, func(t *table) {
			t.row("ID", m.ID)
			t.row("Time", when(m.CreatedAt))
			t.field("Scheduled", whenNil(m.ScheduledAt))
			t.row("From", m.From)
			t.row("To", strings.Join(m.To, ", "))
			t.row("Subject", m.Subject)
			t.row("Status", m.Status)
			for _, r := range m.Recipients {
				t.row("Recipient", r.Email, r.Status, r.LastResponse.Or(""))
			}
			t.text(m.Text.Or(m.HTML.Or("")))
		})
	})
}

func (p Program) usageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "usage", Short: "Show the plan and its usage"}
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		u, err := a.GetUsage(ctx)
		return a.show(u, err, func(t *table) {
			t.row("Plan", u.Plan)
			t.row("Inboxes", used(u.Inboxes.Used, u.Inboxes.Limit, time.Time{}))
			t.row("Sends today", used(u.SendsToday.Used, u.SendsToday.Limit, u.SendsToday.ResetsAt))
			t.row("Emails this month", used(u.EmailsThisMonth.Used, u.EmailsThisMonth.Limit, u.EmailsThisMonth.ResetsAt))
			if u.Sending.Paused {
				t.row("Sending paused", u.Sending.Reason.Or(""))
			}
		})
	})
}

func (p Program) stopCommand() *cobra.Command {
	return p.stopOrResume("stop", "Stop sending for the account, an inbox or a key", (*client.Client).StopSending)
}

func (p Program) resumeCommand() *cobra.Command {
	return p.stopOrResume("resume", "Resume sending after a stop", (*client.Client).ResumeSending)
}

func (p Program) stopOrResume(
	use, short string, call func(*client.Client, context.Context, *gen.StopScope, ...gen.RequestOption) (*gen.Stop, error),
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	inbox := cmd.Flags().String("inbox", "", "only this inbox, by its id")
	key := cmd.Flags().String("key-id", "", "only this key, by its id")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		stop, err := call(a.Client, ctx, &gen.StopScope{InboxID: optNil(*inbox), KeyID: optNil(*key)})
		return a.show(stop, err, func(t *table) {
			state := "sending"
			if stop.Stopped {
				state = "stopped"
			}
			t.row(stop.Scope, state, when(stop.At))
		})
	})
}

// used formats a count against its limit, and when the count resets.
func used(n int, limit gen.NilInt, resets time.Time) string {
	most, ok := limit.Get()
	if !ok {
		return fmt.Sprint(n)
	}
	if resets.IsZero() {
		return fmt.Sprintf("%d of %d", n, most)
	}
	return fmt.Sprintf("%d of %d, until %s", n, most, when(resets))
}
