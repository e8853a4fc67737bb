package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) messageCommand() *cobra.Command {
	return Group(&cobra.Command{Use: "message", Short: "List, show, forward and delete messages, and release them from quarantine"},
		p.messageListCommand(), p.messageGetCommand(), p.messageRawCommand(), p.messageAttachmentCommand(), p.messageForwardCommand(),
		p.messageReleaseCommand(), p.messageDeleteCommand())
}

func (p Program) messageListCommand() *cobra.Command {
	var (
		inbox, from, subject, search, thread string
		direction                            gen.Direction
		status                               gen.MessageStatus
		since                                time.Time
		limit                                int
		text                                 bool
	)
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List messages, newest first",
		Example: "  postroom message list --inbox signup@mail.example.com\n  postroom message list --q '\"verification code\" shop' --since 24h --json",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&inbox, "inbox", "", "only of this inbox, by ID or address")
	cmd.Flags().StringVar(&from, "from", "", "only from this address, or *@domain")
	cmd.Flags().StringVar(&subject, "subject", "", "only with this text in the subject")
	cmd.Flags().StringVar(&search, "q", "", "only with all of these words or \"phrases\"")
	cmd.Flags().StringVar(&thread, "thread", "", "only of this thread, by ID")
	cmd.Flags().Var(moment{&since}, "since", "only since this time, or this long ago, such as 10m")
	choose(cmd, &direction, "direction", "only received (in) or sent (out)", direction.AllValues())
	choose(cmd, &status, "status", "only with this status", status.AllValues())
	cmd.Flags().BoolVar(&text, "text", false, "with --json, include the text of each message")
	limitFlag(cmd, &limit)
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		params := gen.ListMessagesParams{Limit: pageOf(limit), From: opt(from), Subject: opt(subject), Q: opt(search), ThreadID: opt(thread)}
		if inbox != "" {
			id, err := a.inboxID(ctx, inbox)
			if err != nil {
				return err
			}
			params.InboxID.SetTo(id)
		}
		if direction != "" {
			params.Direction.SetTo(direction)
		}
		if status != "" {
			params.Status.SetTo(status)
		}
		if !since.IsZero() {
			params.Since.SetTo(since)
		}
		if text {
			params.Include.SetTo(gen.IncludeTextText)
		}
		return showList(a.output, a.Messages(ctx, params), limit, []string{"ID", "TIME", "STATUS", "FROM", "TO", "SUBJECT"}, messageRow)
	})
}

func messageRow(m gen.Message) []string {
	return []string{m.ID, when(m.CreatedAt), m.Status, short(mailbox(m.From.Value), 40), short(mailboxes(m.To), 40), short(m.Subject, 60)}
}

func (p Program) messageGetCommand() *cobra.Command {
	var html bool
	cmd := &cobra.Command{Use: "get MESSAGE", Short: "Show a message", Args: Wants(1)}
	cmd.Flags().BoolVar(&html, "html", false, "show the HTML instead of the text")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		m, err := a.GetMessage(ctx, gen.GetMessageParams{MessageID: args[0]})
		if err != nil {
			return err
		}
		text := m.Text
		if html {
			text = m.HTML
		}
		return a.show(m, func(t *table) { showMessage(t, m, text.Or("")) })
	})
}

// showMessage prints a message.
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
	t.field("Code", m.Extracted.Value.Otp.Or(""))
	t.field("Link", m.Extracted.Value.ActionLink.Or(""))
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
	var file string
	cmd := &cobra.Command{Use: "raw MESSAGE", Short: "Write the raw message", Args: Wants(1)}
	outputFlag(cmd, &file)
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		raw, err := a.Raw(ctx, args[0])
		if err != nil {
			return err
		}
		return a.saveAll(file, raw)
	})
}

func (p Program) messageAttachmentCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "attachment MESSAGE ATTACHMENT",
		Short:   "Write an attachment; `postroom message get` shows the IDs",
		Example: "  postroom message attachment msg_01k5 att_01k5 --output order.pdf",
		Args:    Wants(2),
	}
	outputFlag(cmd, &file)
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		about, content, err := a.Attachment(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		if err := a.saveAll(file, content); err != nil || !a.json || file == "" || file == "-" {
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
		Args:    Wants(1),
	}
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		m, err := a.ReleaseMessage(ctx, gen.ReleaseMessageParams{MessageID: args[0]})
		if err != nil {
			return err
		}
		return a.show(m, func(t *table) { t.row(m.ID, m.Status) })
	})
}

func outputFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "output", "o", "", "new file to write to (default: standard output, unless it is a terminal)")
}

func (a *api) saveAll(file string, r io.ReadCloser) error {
	err := a.save(file, r)
	_ = r.Close() // read to the end, or unusable
	return err
}

func (p Program) messageForwardCommand() *cobra.Command {
	var (
		to, cc, bcc []string
		note, once  string
		bare        bool
	)
	cmd := &cobra.Command{
		Use:     "forward MESSAGE",
		Short:   "Forward a message with its attachments",
		Example: "  postroom message forward msg_01k5 --to 'Ana <ana@example.org>' --text 'For you.'",
		Args:    Wants(1),
	}
	cmd.Flags().StringArrayVar(&to, "to", nil, "recipient (repeatable)")
	cmd.Flags().StringArrayVar(&cc, "cc", nil, "Cc recipient")
	cmd.Flags().StringArrayVar(&bcc, "bcc", nil, "Bcc recipient")
	cmd.Flags().StringVar(&note, "text", "", "note above the message")
	cmd.Flags().BoolVar(&bare, "without-attachments", false, "leave out the attachments of the message")
	cmd.Flags().StringVar(&once, "idempotency-key", "", "idempotency key: a retry within 24 hours does not send again")
	mustGive(cmd, "to")
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		res, err := a.ForwardMessage(ctx, &gen.MessageForward{
			To: client.To(to...), Cc: client.Copy(cc...), Bcc: client.Copy(bcc...), Text: optNil(note), IncludeAttachments: gen.NewOptBool(!bare),
		}, gen.ForwardMessageParams{MessageID: args[0], IdempotencyKey: opt(once)})
		return a.showSent(res, err)
	})
}

func (p Program) messageDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete MESSAGE", Short: "Delete a message permanently, also one in quarantine", Args: Wants(1)}
	return p.overAPI(deletes(cmd), func(ctx context.Context, a *api, args []string) error {
		if err := p.confirm(cmd, "message "+args[0]); err != nil {
			return err
		}
		gone, err := a.DeleteMessage(ctx, gen.DeleteMessageParams{MessageID: args[0]})
		return a.showDeleted(gone, err, "message "+args[0])
	})
}
