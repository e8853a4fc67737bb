package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postroom/postroom/client"
	"github.com/postroom/postroom/gen"
)

func (p Program) sendCommand() *cobra.Command {
	var m body
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send a message from an inbox, or an email from any address of your domains",
		Example: "  postroom send --inbox agent@mail.example.com --to ana@example.org --subject Hello --text 'Are you there?'\n" +
			"  postroom send --from 'Shop <shop@mail.example.com>' --to ana@example.org --subject Welcome --html-file welcome.html",
	}
	inbox := cmd.Flags().String("inbox", "", "inbox that sends the message, by ID or address")
	from := cmd.Flags().String("from", "", "sender of an email: an address, or 'Name <address>'")
	to := cmd.Flags().StringArray("to", nil, "recipient, up to 50 times")
	e := envelopeFlags(cmd)
	subject := cmd.Flags().String("subject", "", "subject line")
	m.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("inbox", "from")
	cmd.MarkFlagsOneRequired("inbox", "from")
	mustGive(cmd, "to", "subject")
	return p.overAPI(cmd, func(ctx context.Context, a *api, _ []string) error {
		if err := m.load(p); err != nil {
			return err
		}
		if *from != "" {
			res, err := a.SendEmail(ctx, &gen.EmailSend{
				From: client.Address(*from), To: client.To(*to...), Cc: copies(*e.cc), Bcc: copies(*e.bcc), Subject: opt(*subject),
				Text: m.read.text, HTML: m.read.html, Attachments: m.emailAttachments(),
			}, gen.SendEmailParams{IdempotencyKey: opt(*e.once)})
			return a.showSent(res, err)
		}
		id, err := a.inboxID(ctx, *inbox)
		if err != nil {
			return err
		}
		res, err := a.SendMessage(ctx, &gen.MessageSend{
			To: client.To(*to...), Cc: client.Copy(*e.cc...), Bcc: client.Copy(*e.bcc...), Subject: *subject,
			Text: m.read.text, HTML: m.read.html, Attachments: m.attachments(),
		}, gen.SendMessageParams{InboxID: id, IdempotencyKey: opt(*e.once)})
		return a.showSent(res, err)
	})
}

// mustGive marks flags as required.
func mustGive(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // cannot fail: the flag exists
	}
}

// envelope holds the flags that all commands have that send.
type envelope struct {
	cc, bcc *[]string
	once    *string
}

func envelopeFlags(cmd *cobra.Command) envelope {
	return envelope{
		cc:   cmd.Flags().StringArray("cc", nil, "Cc recipient"),
		bcc:  cmd.Flags().StringArray("bcc", nil, "Bcc recipient"),
		once: cmd.Flags().String("idempotency-key", "", "idempotency key: a retry within 24 hours does not send again"),
	}
}

// showSent prints the result of a send or reply: a message or a draft.
func (a *api) showSent(res any, err error) error {
	return a.show(res, err, func(t *table) {
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
	var m body
	cmd := &cobra.Command{
		Use:     "reply MESSAGE",
		Short:   "Reply to a message",
		Example: "  postroom reply msg_01k5 --text 'I am.'",
	}
	all := cmd.Flags().Bool("all", false, "reply to all recipients")
	e := envelopeFlags(cmd)
	m.flags(cmd)
	return p.overAPI(cmd, func(ctx context.Context, a *api, args []string) error {
		if err := m.load(p); err != nil {
			return err
		}
		reply := &gen.MessageReply{Cc: client.Copy(*e.cc...), Bcc: client.Copy(*e.bcc...), Text: m.read.text, HTML: m.read.html, Attachments: m.attachments()}
		given(&reply.ReplyAll, *all)
		res, err := a.ReplyToMessage(ctx, reply, gen.ReplyToMessageParams{MessageID: args[0], IdempotencyKey: opt(*e.once)})
		return a.showSent(res, err)
	})
}
