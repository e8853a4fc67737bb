package client

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/gen"
)

// Sent is the result of a send, a reply or a forward: a queued message or, if
// the inbox requires approval, a pending draft. Exactly one of the two is not
// nil.
type Sent struct {
	Message *gen.Message
	Draft   *gen.Draft
}

// NewInbox creates an inbox. With the zero value of in, it has a random
// address.
func (c *Client) NewInbox(ctx context.Context, in gen.InboxCreate) (*gen.Inbox, error) {
	return c.CreateInbox(ctx, gen.NewOptInboxCreate(in), gen.CreateInboxParams{})
}

// Send sends a message from an inbox and starts a new thread.
func (c *Client) Send(ctx context.Context, inboxID string, m gen.MessageSend) (Sent, error) {
	res, err := c.SendMessage(ctx, &m, gen.SendMessageParams{InboxID: inboxID})
	return sentOf(res, err)
}

// Reply replies to a message in its thread.
func (c *Client) Reply(ctx context.Context, messageID string, m gen.MessageReply) (Sent, error) {
	res, err := c.ReplyToMessage(ctx, &m, gen.ReplyToMessageParams{MessageID: messageID})
	return sentOf(res, err)
}

// Forward forwards a message, by default with its attachments.
func (c *Client) Forward(ctx context.Context, messageID string, m gen.MessageForward) (Sent, error) {
	res, err := c.ForwardMessage(ctx, &m, gen.ForwardMessageParams{MessageID: messageID})
	return sentOf(res, err)
}

func sentOf(res any, err error) (Sent, error) {
	if err != nil {
		return Sent{}, err
	}
	switch v := res.(type) {
	case *gen.Message:
		return Sent{Message: v}, nil
	case *gen.Draft:
		return Sent{Draft: v}, nil
	}
	return Sent{}, fmt.Errorf("postroom: unexpected response to a send: %T", res)
}

// Text sets an optional string of a request, such as a name.
func Text(s string) gen.OptString { return gen.NewOptString(s) }

// Body sets an optional string of a request that may also be null, such as the
// text of a message.
func Body(s string) gen.OptNilString { return gen.NewOptNilString(s) }

// Address returns an address of a request: "ana@example.org" or
// "Ana <ana@example.org>".
func Address(s string) gen.Address { return gen.NewMailboxAddress(gen.Mailbox(s)) }

// To returns the recipients of a message or an email, each with or without a name.
func To(addresses ...string) gen.Recipients {
	all := make(gen.AddressArray, 0, len(addresses))
	for _, a := range addresses {
		all = append(all, Address(a))
	}
	return gen.NewAddressArrayRecipients(all)
}

// Copy returns further recipients for Cc, Bcc and ReplyTo. Without addresses,
// the field stays unset.
func Copy(addresses ...string) gen.OptOptionalRecipients {
	if len(addresses) == 0 {
		return gen.OptOptionalRecipients{}
	}
	all := make(gen.OptionalAddressArray, 0, len(addresses))
	for _, a := range addresses {
		all = append(all, Address(a))
	}
	return gen.NewOptOptionalRecipients(gen.NewOptionalAddressArrayOptionalRecipients(all))
}
