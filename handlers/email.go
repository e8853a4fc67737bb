package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/store"
)

var errNotCancellable = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeNotCancellable, Message: "this email is no longer scheduled"}

// GetEmail implements GET /v1/emails/{id}.
func (a *API) GetEmail(ctx context.Context, p gen.GetEmailParams) (*gen.Email, error) {
	e, err := a.emailOf(ctx, p.ID)
	return result(e, err, emailToAPI)
}

// maxTagName is the maximum length of a tag name, in characters.
const maxTagName = 40

// tagsOf returns all tags that a filter of the form key:value can mean: names
// may contain colons too.
func tagsOf(filter string) (tags [][2]string) {
	runes := 0
	for i, r := range filter {
		if r == ':' && i > 0 {
			tags = append(tags, [2]string{filter[:i], filter[i+1:]})
		}
		if runes++; runes > maxTagName {
			break
		}
	}
	if tags == nil {
		return [][2]string{{filter, ""}} // matches no email
	}
	return tags
}

// ListEmailEvents implements GET /v1/emails/{id}/events.
func (a *API) ListEmailEvents(ctx context.Context, p gen.ListEmailEventsParams, w http.ResponseWriter) error {
	e, err := a.emailOf(ctx, p.ID)
	if err != nil {
		return err
	}
	l, err := a.store.ListMessageEvents(ctx, e.AccountID, e.Seq, pageOf(p.Limit, p.Cursor))
	if err != nil {
		return err
	}
	return a.writeEvents(ctx, w, l)
}

// ListEmails implements GET /v1/emails.
func (a *API) ListEmails(ctx context.Context, p gen.ListEmailsParams) (*gen.EmailList, error) {
	k := httpapi.Caller(ctx)
	f := store.EmailFilter{
		AccountID: k.AccountID, InboxIDs: httpapi.Visible(k), Status: store.MessageStatus(p.Status.Or("")), BatchID: p.BatchID.Or(""),
		ToLike: fromLike(p.To), Since: sinceOf(p.Since), Until: sinceOf(p.Until),
	}
	if tag, ok := p.Tag.Get(); ok {
		f.Tags = tagsOf(tag)
	}
	l, err := a.store.ListEmails(ctx, f, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.EmailList](l, err, emailToAPI)
}

// CancelEmail implements DELETE /v1/emails/{id}.
func (a *API) CancelEmail(ctx context.Context, p gen.CancelEmailParams) (*gen.Email, error) {
	return a.changeScheduled(ctx, p.ID, func(e store.Email) error { return a.store.CancelEmail(ctx, e.AccountID, e.ID) })
}

// RescheduleEmail implements PATCH /v1/emails/{id}.
func (a *API) RescheduleEmail(ctx context.Context, req *gen.EmailUpdate, p gen.RescheduleEmailParams) (*gen.Email, error) {
	if err := a.checkSchedule(req.ScheduledAt.Value); err != nil {
		return nil, err
	}
	rules := DueRules(a.store, a.cfg.MailDomain, a.cfg.AnySender)
	return a.changeScheduled(ctx, p.ID, func(e store.Email) error {
		return a.store.RescheduleEmail(ctx, e.AccountID, e.ID, store.NewTime(req.ScheduledAt.Value), rules)
	})
}

// changeScheduled applies a change that only a scheduled email permits.
func (a *API) changeScheduled(ctx context.Context, id string, change func(store.Email) error) (*gen.Email, error) {
	e, err := a.emailOf(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := change(e); errors.Is(err, store.ErrState) {
		return nil, errNotCancellable
	} else if err != nil {
		return nil, err
	}
	e, err = a.emailOf(ctx, id)
	return result(e, err, emailToAPI)
}

// emailOf returns the email if the caller can see it. A key with inbox_ids sees
// emails from the addresses of its inboxes.
func (a *API) emailOf(ctx context.Context, id string) (store.Email, error) {
	k := httpapi.Caller(ctx)
	return a.store.Email(ctx, k.AccountID, httpapi.Visible(k), id)
}

func emailToAPI(e store.Email) *gen.Email {
	as := e.Addresses.V
	out := &gen.Email{
		Object: "email", ID: e.ID, Status: string(e.Status), Expired: e.ExpiredAt != nil, From: senderToAPI(as), To: mailboxes(as.To),
		Cc:  nullMailboxes(as.Cc),
		Bcc: nullMailboxes(as.Bcc), ReplyTo: nullMailboxes(as.ReplyTo), Subject: e.Subject, HTML: gen.NilString{Null: true},
		Text: gen.NilString{Null: true}, Tags: labelsToAPI(e.Tags.V), Metadata: metadataToAPI(e.Metadata.V), Category: string(e.Category), RfcMessageID: e.HeaderID,
		Recipients: mapped(e.Recipients, recipientToAPI), CreatedAt: e.CreatedAt.Time, ScheduledAt: nilTime(e.ScheduledAt),
		SentAt: nilTime(e.SentAt), DeliveredAt: nilTime(e.DeliveredAt), OpenedAt: nilTime(e.OpenedAt), TestMode: e.TestMode,
		BatchID: nilString(e.BatchID),
	}
	if c := e.Content; c != nil && c.Body != nil {
		out.HTML, out.Text = emptyIsNull(c.Body.V.HTML), emptyIsNull(c.Body.V.Text)
	}
	return out
}

func emailCreatedToAPI(e store.Email) *gen.EmailCreated {
	return &gen.EmailCreated{
		Object: "email", ID: e.ID, Status: string(e.Status), From: senderToAPI(e.Addresses.V), To: mailboxes(e.Addresses.V.To),
		Subject: e.Subject, CreatedAt: e.CreatedAt.Time, ScheduledAt: nilTime(e.ScheduledAt), TestMode: e.TestMode,
	}
}

func (a *API) batchToAPI(ctx context.Context, b store.Batch) *gen.EmailBatch {
	out := &gen.EmailBatch{
		Object: "email.batch", ID: b.ID, Count: len(b.Emails), Refused: []gen.RefusedInBatch{},
		Drafts: mapped(b.Held, func(h store.HeldEmail) gen.DraftInBatch { return gen.DraftInBatch{Index: h.Index, DraftID: h.DraftID} }),
		Emails: mapped(b.Emails, func(e store.Email) gen.EmailInBatch {
			c := emailCreatedToAPI(e)
			return gen.EmailInBatch{
				Object: c.Object, ID: c.ID, Status: c.Status, From: c.From, To: c.To, Subject: c.Subject, CreatedAt: c.CreatedAt,
				ScheduledAt: c.ScheduledAt, TestMode: c.TestMode, BatchID: b.ID,
			}
		}),
	}
	for _, r := range b.Refused {
		e := a.Classify(ctx, refusedInBatch(r.Err))
		refused := gen.RefusedInBatch{Index: r.Index, Code: e.Code, Message: e.Message, Param: emptyIsNull(e.Param), RetryAfter: gen.NilInt{Null: true}}
		if e.RetryAfter > 0 {
			refused.RetryAfter = gen.NewNilInt(e.RetryAfter)
		}
		out.Refused = append(out.Refused, refused)
	}
	return out
}

func senderToAPI(as mail.Addresses) string {
	if as.From == nil {
		return ""
	}
	return mailbox(*as.From)
}

// DueRules returns the rules that the store applies to a scheduled email when
// it is due. mailDomain is the mail domain of the installation, and anySender lets every
// account send from any domain.
func DueRules(s *store.Store, mailDomain string, anySender bool) store.DueRules {
	a := &API{store: s, now: time.Now}
	return store.DueRules{MailDomain: mailDomain, AnySender: anySender, Draft: a.draftOfEmail}
}

// draftOfEmail returns the draft that replaces a scheduled email if its inbox
// now requires approval. The store keeps its tags, metadata and category.
func (a *API) draftOfEmail(ctx context.Context, e store.Email) (store.NewDraft, error) {
	as := e.Addresses.V
	s := &submission{
		inbox: store.Inbox{Seq: *e.FromInbox}, kind: store.DraftNew, testMode: e.TestMode, subject: e.Subject, refs: e.Refs.V,
		to: fromStore(as.To), cc: fromStore(as.Cc), bcc: fromStore(as.Bcc), attachments: a.storedParts(ctx, e.Seq, e.Content.Attachments.V),
	}
	if b := e.Content.Body; b != nil {
		s.text, s.html = b.V.Text, b.V.HTML
	}
	var err error
	if s.headers, err = a.addedHeaders(ctx, e.Message); err != nil {
		return store.NewDraft{}, err
	}
	n, err := a.newDraft(ctx, s)
	n.Addresses = e.Addresses
	return n, err
}

// addedHeaders returns the header fields of an email that its caller added.
func (a *API) addedHeaders(ctx context.Context, m store.Message) ([][2]string, error) {
	raw, err := a.openRaw(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { _ = raw.Close() }()
	fields, _, err := mime.ReadHeader(raw, mail.DefaultLimits())
	added := [][2]string{}
	for _, f := range fields {
		if !isOwnHeader(string(f.Name)) {
			added = append(added, [2]string{string(f.Name), f.Text()})
		}
	}
	return added, err
}
