package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

var errNotCancellable = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeNotCancellable, Message: "this email is no longer scheduled"}

var _ gen.EmailsHandler = (*API)(nil)

// GetEmail implements GET /v1/emails/{id}.
func (a *API) GetEmail(ctx context.Context, p gen.GetEmailParams) (*gen.Email, error) {
	e, err := a.emailOf(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	return emailToAPI(e)
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

// ListEmails implements GET /v1/emails.
func (a *API) ListEmails(ctx context.Context, p gen.ListEmailsParams) (*gen.EmailList, error) {
	k := httpapi.Caller(ctx)
	f := store.EmailFilter{
		AccountID: k.AccountID, InboxIDs: httpapi.Visible(k), Status: store.MessageStatus(p.Status.Or("")), BatchID: p.BatchID.Or(""),
	}
	if tag, ok := p.Tag.Get(); ok {
		f.Tags = tagsOf(tag)
	}
	l, err := a.store.ListEmails(ctx, f, pageOf(p.Limit, p.Cursor))
	if err != nil {
		return nil, err
	}
	out := &gen.EmailList{Data: make([]gen.Email, 0, len(l.Rows)), HasMore: l.Cursor != "", Cursor: nextCursor(l.Cursor)}
	for _, e := range l.Rows {
		v, err := emailToAPI(e)
		if err != nil {
			return nil, err
		}
		out.Data = append(out.Data, *v)
	}
	return out, nil
}

// CancelEmail implements DELETE /v1/emails/{id}.
func (a *API) CancelEmail(ctx context.Context, p gen.CancelEmailParams) (*gen.Email, error) {
	return a.changeScheduled(ctx, p.ID, func(e store.Email) error { return a.store.CancelEmail(ctx, e.AccountID, e.ID) })
}

// RescheduleEmail implements PATCH /v1/emails/{id}.
func (a *API) RescheduleEmail(ctx context.Context, req *gen.EmailUpdate, p gen.RescheduleEmailParams) (*gen.Email, error) {
	if err := a.checkSchedule(req.ScheduledAt); err != nil {
		return nil, err
	}
	return a.changeScheduled(ctx, p.ID, func(e store.Email) error {
		return a.store.RescheduleEmail(ctx, e.AccountID, e.ID, store.NewTime(req.ScheduledAt), DueRules(a.store, a.cfg.MailDomain))
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
	if e, err = a.emailOf(ctx, id); err != nil {
		return nil, err
	}
	return emailToAPI(e)
}

// emailOf returns the email if the caller can see it. A key with inbox_ids sees
// emails from the addresses of its inboxes.
func (a *API) emailOf(ctx context.Context, id string) (store.Email, error) {
	k := httpapi.Caller(ctx)
	return a.store.Email(ctx, k.AccountID, httpapi.Visible(k), id)
}
