package cli

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/gen"
)

func (p Program) draftCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "draft", Short: "List drafts, and approve or reject them"},
		p.draftListCommand(), p.draftGetCommand(), p.draftExpireCommand(), p.draftApproveCommand(), p.draftUndoCommand(), p.draftRejectCommand())
}

func (p Program) draftListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List pending drafts, newest first"}
	inbox := cmd.Flags().String("inbox", "", "only of this inbox, by ID or address")
	status := choose(cmd, "status", "only with this status", gen.DraftStatusPending, gen.DraftStatus("").AllValues())
	every := cmd.Flags().Bool("all", false, "drafts of any status")
	cmd.MarkFlagsMutuallyExclusive("status", "all")
	limit := limitFlag(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		var with gen.OptDraftStatus
		if !*every {
			with.SetTo(*status)
		}
		drafts, err := a.drafts(ctx, *inbox, with, *limit)
		if err != nil {
			return err
		}
		return showList(a.output, drafts, *limit, []string{"ID", "TIME", "STATUS", "VERSION", "TO", "SUBJECT"}, func(d gen.Draft) []string {
			return []string{d.ID, when(d.CreatedAt), d.Status, fmt.Sprint(d.Version), short(mailboxes(d.To), 40), short(d.Subject, 60)}
		})
	})
}

// drafts returns the drafts of one inbox, or of all if inbox is empty.
func (a *api) drafts(ctx context.Context, inbox string, with gen.OptDraftStatus, limit int) (iter.Seq2[gen.Draft, error], error) {
	if inbox == "" {
		return a.Drafts(ctx, gen.ListDraftsParams{Status: with, Limit: pageOf(limit)}), nil
	}
	id, err := a.inboxID(ctx, inbox)
	return a.InboxDrafts(ctx, gen.ListInboxDraftsParams{InboxID: id, Status: with, Limit: pageOf(limit)}), err
}

func (p Program) draftGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get DRAFT", Short: "Show a draft"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		d, err := a.GetDraft(ctx, gen.GetDraftParams{DraftID: id})
		return a.show(d, err, func(t *table) {
			t.row("ID", d.ID)
			t.row("Status", d.Status)
			t.row("Version", fmt.Sprint(d.Version))
			t.row("Inbox", d.InboxID)
			t.row("To", mailboxes(d.To))
			t.field("Cc", mailboxes(d.Cc))
			t.field("Bcc", mailboxes(d.Bcc))
			t.field("Reply to", mailboxes(d.ReplyTo))
			t.row("Subject", d.Subject)
			if at, ok := d.ExpiresAt.Get(); ok {
				t.row("Expires", when(at), d.OnExpiry)
			}
			for _, f := range d.Attachments {
				t.row("Attachment", f.ID, f.Filename, f.ContentType, fmt.Sprintf("%d bytes", f.Size))
			}
			t.field("Rejected", d.RejectReason.Or(""))
			t.field("Sent as", d.MessageID.Or(""))
			t.text(d.Text.Or(d.HTML.Or("")))
		})
	})
}

func (p Program) draftExpireCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "expire DRAFT",
		Short:   "Set when a draft is rejected or sent by itself",
		Example: "  postroom draft expire drf_01k5 --in 2h --then reject",
	}
	in := spanFlag(cmd, "in", 0, "time until the draft expires, such as 2h (default: never)")
	then := choose(cmd, "then", "what happens then; send needs the scope admin", gen.DraftOnExpiryReject, gen.DraftOnExpiry("").AllValues())
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		req := gen.DraftUpdate{ExpiresAt: gen.OptNilDateTime{Set: true, Null: true}, OnExpiry: gen.NewOptDraftOnExpiry(*then)}
		if *in > 0 {
			req.ExpiresAt = gen.NewOptNilDateTime(time.Now().Add(*in))
		}
		d, err := a.UpdateDraft(ctx, &req, gen.UpdateDraftParams{DraftID: id})
		return a.show(d, err, func(t *table) {
			expires := "never"
			if at, ok := d.ExpiresAt.Get(); ok {
				expires = when(at)
			}
			t.row(d.ID, expires, d.OnExpiry)
		})
	})
}

func (p Program) draftApproveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "approve DRAFT",
		Short:   "Approve and send a draft; the key needs the scope admin",
		Example: "  postroom draft approve drf_01k5 --version 2",
	}
	version := cmd.Flags().Int("version", 0, "version that you read; fails if the draft was edited since (default: the current version)")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		var req gen.OptDraftSend
		if *version != 0 {
			req.SetTo(gen.DraftSend{Version: gen.NewOptInt(*version)})
		}
		m, err := a.SendDraft(ctx, req, gen.SendDraftParams{DraftID: id})
		return a.showSent(m, err)
	})
}

func (p Program) draftUndoCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "undo DRAFT", Short: "Undo the approval of a person within 10 seconds; the key needs the scope admin"}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		d, err := a.UndoDraft(ctx, gen.UndoDraftParams{DraftID: id})
		return a.show(d, err, func(t *table) { t.row(d.ID, d.Status) })
	})
}

func (p Program) draftRejectCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reject DRAFT", Short: "Reject a draft; the key needs the scope admin"}
	reason := cmd.Flags().String("reason", "", "reason, stored with the draft")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		var req gen.OptDraftReject
		if *reason != "" {
			req.SetTo(gen.DraftReject{Reason: opt(*reason)})
		}
		d, err := a.RejectDraft(ctx, req, gen.RejectDraftParams{DraftID: id})
		return a.show(d, err, func(t *table) { t.row(d.ID, d.Status) })
	})
}
