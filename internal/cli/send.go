package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) sendCommand() *cobra.Command {
	var (
		m                          body
		inbox, from, subject, once string
		to, cc, bcc                []string
	)
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send a message from an inbox, or an email from any address of your domains",
		Example: "  postroom send --inbox agent@mail.example.com --to ana@example.org --subject Hello --text 'Are you there?'\n" +
			"  postroom send --from 'Shop <shop@mail.example.com>' --to ana@example.org --subject Welcome --html-file welcome.html",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&inbox, "inbox", "", "inbox that sends the message, by ID or address")
	cmd.Flags().StringVar(&from, "from", "", "sender of an email: an address, or 'Name <address>'")
	cmd.Flags().StringArrayVar(&to, "to", nil, "recipient, up to 50 times")
	cmd.Flags().StringArrayVar(&cc, "cc", nil, "Cc recipient")
	cmd.Flags().StringArrayVar(&bcc, "bcc", nil, "Bcc recipient")
	cmd.Flags().StringVar(&subject, "subject", "", "subject line")
	cmd.Flags().StringVar(&once, "idempotency-key", "", "idempotency key: a retry within 24 hours does not send again")
	m.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("inbox", "from")
	cmd.MarkFlagsOneRequired("inbox", "from")
	mustGive(cmd, "to", "subject")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		if err := m.load(p); err != nil {
			return err
		}
		if from != "" {
			return a.sendEmail(ctx, &gen.EmailSend{
				From: client.Address(from), To: client.To(to...), Cc: copies(cc), Bcc: copies(bcc), Subject: subject,
				Text: m.read.text, HTML: m.read.html, Attachments: m.emailAttachments(),
			}, once)
		}
		id, err := a.inboxID(ctx, inbox)
		if err != nil {
			return err
		}
		res, err := a.SendMessage(ctx, &gen.MessageSend{
			To: client.To(to...), Cc: client.Copy(cc...), Bcc: client.Copy(bcc...), Subject: subject,
			Text: m.read.text, HTML: m.read.html, Attachments: m.attachments(),
		}, gen.SendMessageParams{InboxID: id, IdempotencyKey: opt(once)})
		return a.showSent(res, err)
	})
}

// mustGive marks flags as required.
func mustGive(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // cannot fail: the flag exists
	}
}

func (a *api) sendEmail(ctx context.Context, m *gen.EmailSend, once string) error {
	res, err := a.SendEmail(ctx, m, gen.SendEmailParams{IdempotencyKey: opt(once)})
	return a.showSent(res, err)
}

// showSent prints the result of a send or reply: a message or a draft.
func (a *api) showSent(res any, err error) error {
	if err != nil {
		return err
	}
	return a.show(res, func(t *table) {
		switch v := res.(type) {
		case *gen.Message:
			t.row(v.ID, v.Status)
		case *gen.EmailCreated:
			t.row(v.ID, v.Status)
		case *gen.Draft:
			t.row(v.ID, v.Status, "pending approval: `postroom draft approve "+v.ID+"`")
		default:
			t.row(fmt.Sprintf("%T", res)) // a type of a newer server
		}
	})
}

func copies(all []string) gen.OptNilOptionalRecipients {
	r, ok := client.Copy(all...).Get()
	if !ok {
		return gen.OptNilOptionalRecipients{}
	}
	return gen.NewOptNilOptionalRecipients(r)
}

func (b *body) emailAttachments() []gen.EmailAttachmentInput {
	var all []gen.EmailAttachmentInput
	for _, f := range b.read.files {
		all = append(all, gen.EmailAttachmentInput{Filename: f.name, Content: f.content})
	}
	return all
}

func (p Program) replyCommand() *cobra.Command {
	var (
		m       body
		all     bool
		cc, bcc []string
		once    string
	)
	cmd := &cobra.Command{
		Use:     "reply MESSAGE",
		Short:   "Reply to a message",
		Example: "  postroom reply msg_01k5 --text 'I am.'",
		Args:    Wants(1),
	}
	cmd.Flags().BoolVar(&all, "all", false, "reply to all recipients")
	cmd.Flags().StringArrayVar(&cc, "cc", nil, "Cc recipient")
	cmd.Flags().StringArrayVar(&bcc, "bcc", nil, "Bcc recipient")
	cmd.Flags().StringVar(&once, "idempotency-key", "", "idempotency key: a retry within 24 hours does not send again")
	m.flags(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		if err := m.load(p); err != nil {
			return err
		}
		reply := &gen.MessageReply{Cc: client.Copy(cc...), Bcc: client.Copy(bcc...), Text: m.read.text, HTML: m.read.html, Attachments: m.attachments()}
		if all {
			reply.ReplyAll.SetTo(true)
		}
		res, err := a.ReplyToMessage(ctx, reply, gen.ReplyToMessageParams{MessageID: args[0], IdempotencyKey: opt(once)})
		return a.showSent(res, err)
	})
}
