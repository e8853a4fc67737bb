package client

import (
	"context"
	"errors"
	"iter"

	"github.com/postroom/postroom/gen"
)

// page is one page of a list.
type page[T any] interface {
	GetData() []T
	GetHasMore() bool
	GetCursor() gen.NilString
}

// each ranges over a list starting at the page of the cursor and fetches further pages
// as needed. fetch returns the page of the cursor. each stops at an error.
func each[T any, P page[T]](cursor *gen.OptString, fetch func() (P, error)) iter.Seq2[T, error] {
	first := *cursor
	return func(yield func(T, error) bool) {
		var none T
		for at := first; ; {
			*cursor = at
			p, err := fetch()
			if err != nil {
				yield(none, err)
				return
			}
			for _, v := range p.GetData() {
				if !yield(v, nil) {
					return
				}
			}
			if !p.GetHasMore() {
				return
			}
			next, ok := p.GetCursor().Get()
			if !ok || next == at.Value {
				yield(none, errors.New("postroom: the list has more, but the server does not say where"))
				return
			}
			at = gen.NewOptString(next)
		}
	}
}

// In the list methods, Limit is the page size. An iterator is for one goroutine.

// Inboxes ranges over inboxes, newest first.
func (c *Client) Inboxes(ctx context.Context, p gen.ListInboxesParams, options ...gen.RequestOption) iter.Seq2[gen.Inbox, error] {
	return each(&p.Cursor, func() (*gen.InboxList, error) { return c.ListInboxes(ctx, p, options...) })
}

// Messages ranges over messages of all inboxes, newest first. Their text is null
// unless Include asks for it.
func (c *Client) Messages(ctx context.Context, p gen.ListMessagesParams, options ...gen.RequestOption) iter.Seq2[gen.Message, error] {
	return each(&p.Cursor, func() (*gen.MessageList, error) { return c.ListMessages(ctx, p, options...) })
}

// InboxMessages ranges over messages of one inbox, newest first. Their text is
// null unless Include asks for it.
func (c *Client) InboxMessages(ctx context.Context, p gen.ListInboxMessagesParams, options ...gen.RequestOption) iter.Seq2[gen.Message, error] {
	return each(&p.Cursor, func() (*gen.MessageList, error) { return c.ListInboxMessages(ctx, p, options...) })
}

// Threads ranges over threads of one inbox, the one with the newest message first.
func (c *Client) Threads(ctx context.Context, p gen.ListThreadsParams, options ...gen.RequestOption) iter.Seq2[gen.Thread, error] {
	return each(&p.Cursor, func() (*gen.ThreadList, error) { return c.ListThreads(ctx, p, options...) })
}

// Drafts ranges over drafts of all inboxes, newest first; with status pending, the approval queue.
func (c *Client) Drafts(ctx context.Context, p gen.ListDraftsParams, options ...gen.RequestOption) iter.Seq2[gen.Draft, error] {
	return each(&p.Cursor, func() (*gen.DraftList, error) { return c.ListDrafts(ctx, p, options...) })
}

// InboxDrafts ranges over drafts of one inbox, newest first.
func (c *Client) InboxDrafts(ctx context.Context, p gen.ListInboxDraftsParams, options ...gen.RequestOption) iter.Seq2[gen.Draft, error] {
	return each(&p.Cursor, func() (*gen.DraftList, error) { return c.ListInboxDrafts(ctx, p, options...) })
}

// Emails ranges over emails, newest first.
func (c *Client) Emails(ctx context.Context, p gen.ListEmailsParams, options ...gen.RequestOption) iter.Seq2[gen.Email, error] {
	return each(&p.Cursor, func() (*gen.EmailList, error) { return c.ListEmails(ctx, p, options...) })
}

// Templates ranges over templates, newest first.
func (c *Client) Templates(ctx context.Context, p gen.ListTemplatesParams, options ...gen.RequestOption) iter.Seq2[gen.Template, error] {
	return each(&p.Cursor, func() (*gen.TemplateList, error) { return c.ListTemplates(ctx, p, options...) })
}

// Contacts ranges over contacts, newest first.
func (c *Client) Contacts(ctx context.Context, p gen.ListContactsParams, options ...gen.RequestOption) iter.Seq2[gen.Contact, error] {
	return each(&p.Cursor, func() (*gen.ContactList, error) { return c.ListContacts(ctx, p, options...) })
}

// Domains ranges over domains, newest first.
func (c *Client) Domains(ctx context.Context, p gen.ListDomainsParams, options ...gen.RequestOption) iter.Seq2[gen.Domain, error] {
	return each(&p.Cursor, func() (*gen.DomainList, error) { return c.ListDomains(ctx, p, options...) })
}

// Suppressions ranges over suppressions, newest first.
func (c *Client) Suppressions(ctx context.Context, p gen.ListSuppressionsParams, options ...gen.RequestOption) iter.Seq2[gen.Suppression, error] {
	return each(&p.Cursor, func() (*gen.SuppressionList, error) { return c.ListSuppressions(ctx, p, options...) })
}

// ListEntries ranges over the entries of lists, newest first.
func (c *Client) ListEntries(ctx context.Context, p gen.ListListEntriesParams, options ...gen.RequestOption) iter.Seq2[gen.ListEntry, error] {
	return each(&p.Cursor, func() (*gen.ListEntryList, error) { return c.ListListEntries(ctx, p, options...) })
}

// Webhooks ranges over webhook endpoints, newest first.
func (c *Client) Webhooks(ctx context.Context, p gen.ListWebhooksParams, options ...gen.RequestOption) iter.Seq2[gen.WebhookEndpoint, error] {
	return each(&p.Cursor, func() (*gen.WebhookList, error) { return c.ListWebhooks(ctx, p, options...) })
}

// WebhookDeliveries ranges over deliveries to one webhook endpoint, newest first.
func (c *Client) WebhookDeliveries(ctx context.Context, p gen.ListWebhookDeliveriesParams, options ...gen.RequestOption) iter.Seq2[gen.WebhookDelivery, error] {
	return each(&p.Cursor, func() (*gen.WebhookDeliveryList, error) { return c.ListWebhookDeliveries(ctx, p, options...) })
}

// Keys ranges over keys, newest first.
func (c *Client) Keys(ctx context.Context, p gen.ListKeysParams, options ...gen.RequestOption) iter.Seq2[gen.ApiKey, error] {
	return each(&p.Cursor, func() (*gen.ApiKeyList, error) { return c.ListKeys(ctx, p, options...) })
}

// APIKeys ranges over the same keys with GET /v1/api-keys, newest first.
func (c *Client) APIKeys(ctx context.Context, p gen.ListApiKeysParams, options ...gen.RequestOption) iter.Seq2[gen.ApiKey, error] {
	return each(&p.Cursor, func() (*gen.ApiKeyList, error) { return c.ListApiKeys(ctx, p, options...) })
}
