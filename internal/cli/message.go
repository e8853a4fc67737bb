package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) messageCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "message", Short: "List, show, label, forward and delete messages, and release them from quarantine"},
		p.messageListCommand(), p.messageGetCommand(), p.messageRawCommand(), p.messageAttachmentCommand(), p.messageForwardCommand(),
		p.messageMarkCommand(), p.messageReleaseCommand(),
		p.deletion("delete MESSAGE", "Delete a message permanently, also one in quarantine", "message %s", (*api).byID, func(ctx context.Context, a *api, id string) (any, error) {
			return a.DeleteMessage(ctx, gen.DeleteMessageParams{MessageID: id})
		}))
}

func (p Program) messageListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List messages, newest first",
		Example: "  postroom message list --inbox signup@mail.example.com\n  postroom message list --q '\"verification code\" shop' --since 24h --json",
	}
	inbox := cmd.Flags().String("inbox", "", "only of this inbox, by ID or address")
	from := cmd.Flags().String("from", "", "only from this address, or *@domain")
	subject := cmd.Flags().String("subject", "", "only with this text in the subject")
	search := cmd.Flags().String("q", "", "only with all of these words or \"phrases\"")
	thread := cmd.Flags().String("thread", "", "only of this thread, by ID")
	label := cmd.Flags().String("label", "", "only with this label")
	since := momentFlag(cmd, "since", "only since this time, or this long ago, such as 10m")
	direction := choose(cmd, "direction", "only received (in) or sent (out)", "", gen.Direction("").AllValues())
	status := choose(cmd, "status", "only with this status", "", gen.MessageStatus("").AllValues())
	text := cmd.Flags().Bool("text", false, "with --json, include the text of each message")
	limit := limitFlag(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		id, err := a.inboxID(ctx, *inbox)
		if err != nil {
			return err
		}
		params := gen.ListMessagesParams{Limit: pageOf(*limit), From: opt(*from), Subject: opt(*subject), Q: opt(*search), ThreadID: opt(*thread), InboxID: opt(id)}
		given(&params.Direction, *direction)
		given(&params.Status, *status)
		given(&params.Since, *since)
		given(&params.Label, gen.Label(*label))
		if *text {
			params.Include.SetTo(gen.IncludeTextText)
		}
		return showList(a.output, a.Messages(ctx, params), *limit, []string{"ID", "TIME", "STATUS", "FROM", "TO", "CODE", "SUBJECT"}, messageRow)
	})
}

func messageRow(m gen.Message) []string {
	return []string{m.ID, when(m.CreatedAt), m.Status, short(mailbox(m.From.Value), 40), short(mailboxes(m.To), 40), m.Extracted.Value.Otp.Or(""), short(m.Subject, 60)}
}

func (p Program) messageGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get MESSAGE", Short: "Show a message"}
	html := cmd.Flags().Bool("html", false, "show the HTML instead of the text")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		m, err := a.GetMessage(ctx, gen.GetMessageParams{MessageID: id})
		return a.show(m, err, func(t *table) {
			text := m.Text
			if *html {
				text = m.HTML
			}
			showMessage(t, m, text.Or(""))
		})
	})
}

func showMessage(t *table, m *gen.Message, text string) {
	t.row("ID", m.ID)
	t.row("Time", when(m.CreatedAt))
	t.row("From", mailbox(m.From.Value))
	t.row("To", mailboxes(m.To))
	t.field("Cc", mailboxes(m.Cc))
	t.row("Subject", m.Subject)
	t.row("Status", m.Status)
	t.row("Inbox", m.InboxID)
	t.row("Thread", m.ThreadID)
	t.field("Labels", strings.Join(m.Labels, ", "))
	t.field("Code", m.Extracted.Value.Otp.Or(""))
	t.field("Link", m.Extracted.Value.ActionLink.Or(""))
	for _, l := range m.LinkScan {
		result := map[bool]string{true: "works", false: "does not work"}[l.Works]
		if by, burned := l.BurnedBy.Get(); burned {
			result = "stops working after " + by
		}
		t.row("Link scan", result, l.URL)
	}
	for _, f := range m.Attachments {
		t.row("Attachment", f.ID, f.Filename, f.ContentType, fmt.Sprintf("%d bytes", f.Size))
	}
	for _, r := range m.Recipients {
		t.row("Recipient", r.Email, r.Status, r.LastResponse.Or(""))
	}
	if m.Expired {
		t.row("", "The content was deleted when the retention period ended.")
	}
	t.text(text)
}

func (p Program) messageRawCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "raw MESSAGE", Short: "Write the raw message"}
	file := outputFlag(cmd)
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		raw, err := a.Raw(ctx, id)
		if err != nil {
			return err
		}
		return a.saveAll(*file, raw)
	})
}

func (p Program) messageAttachmentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "attachment MESSAGE ATTACHMENT",
		Short:   "Write an attachment; `postroom message get` shows the IDs",
		Example: "  postroom message attachment msg_01k5 att_01k5 --output order.pdf",
	}
	file := outputFlag(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		about, content, err := a.Attachment(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		if err := a.saveAll(*file, content); err != nil || !a.json || *file == "" || *file == "-" {
			return err
		}
		return a.writeJSON(about)
	})
}

func (p Program) messageReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release MESSAGE",
		Short:   "Release a message from quarantine; the key needs the scope admin",
		Example: "  postroom message list --status quarantined\n  postroom message release msg_01k5",
	}
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		m, err := a.ReleaseMessage(ctx, gen.ReleaseMessageParams{MessageID: id})
		return a.show(m, err, func(t *table) { t.row(m.ID, m.Status) })
	})
}

func outputFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("output", "o", "", "new file to write to (default: standard output, unless it is a terminal)")
}

func (a *api) saveAll(file string, r io.ReadCloser) error {
	err := a.save(file, r)
	_ = r.Close() // read to the end, or unusable
	return err
}

func (p Program) messageForwardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "forward MESSAGE",
		Short:   "Forward a message with its attachments",
		Example: "  postroom message forward msg_01k5 --to 'Ana <ana@example.org>' --text 'For you.'",
	}
	to := cmd.Flags().StringArray("to", nil, "recipient (repeatable)")
	e := envelopeFlags(cmd)
	note := cmd.Flags().String("text", "", "note above the message")
	bare := cmd.Flags().Bool("without-attachments", false, "leave out the attachments of the message")
	mustGive(cmd, "to")
	return p.named(cmd, (*api).byID, func(ctx context.Context, a *api, id string) error {
		res, err := a.ForwardMessage(ctx, &gen.MessageForward{
			To: client.To(*to...), Cc: client.Copy(*e.cc...), Bcc: client.Copy(*e.bcc...), Text: optNil(*note), IncludeAttachments: gen.NewOptBool(!*bare),
		}, gen.ForwardMessageParams{MessageID: id, IdempotencyKey: opt(*e.once)})
		return a.showSent(res, err)
	})
}
