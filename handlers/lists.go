package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/reply"
	"github.com/postroom/postroom/store"
)

// CreateListEntry implements POST /v1/lists.
func (a *API) CreateListEntry(ctx context.Context, req *gen.ListEntryCreate, _ gen.CreateListEntryParams) (*gen.ListEntry, error) {
	by := httpapi.Caller(ctx)
	pattern, err := mail.ParseListPattern(req.Pattern)
	if err != nil {
		return nil, httpapi.Invalid("pattern", "%q %s", req.Pattern, err)
	}
	e := store.ListEntry{
		AccountID: by.AccountID, Direction: store.ListDirection(req.Direction), Action: mail.ListAction(req.Action), Pattern: pattern, CreatedBy: by.ID,
	}
	admin := httpapi.HasScope(by.Scopes.V, "admin")
	if id, ok := req.InboxID.Get(); ok {
		in, err := a.filteredInbox(ctx, id)
		if err != nil {
			return nil, err
		}
		e.InboxSeq = in.Seq
	} else if !admin || httpapi.Visible(by) != nil {
		return nil, errNeedsAdmin("inbox_id", "an entry for the whole account needs a key with the scope admin and without inbox_ids: set inbox_id")
	}
	e, err = a.store.CreateListEntry(ctx, e, admin, once(ctx, http.StatusCreated, "ListEntry", listEntryToAPI))
	if errors.Is(err, store.ErrLoosens) {
		err = errNeedsAdmin("action", "%s for %s lets mail pass that the lists stop now, which needs the scope admin", req.Action, pattern)
	}
	return result(e, err, listEntryToAPI)
}

// ListListEntries implements GET /v1/lists.
func (a *API) ListListEntries(ctx context.Context, p gen.ListListEntriesParams) (*gen.ListEntryList, error) {
	k := httpapi.Caller(ctx)
	l, err := a.store.ListEntries(ctx, k.AccountID, httpapi.Visible(k), pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.ListEntryList](l, err, listEntryToAPI)
}

// DeleteListEntry implements DELETE /v1/lists/{list_id}.
func (a *API) DeleteListEntry(ctx context.Context, p gen.DeleteListEntryParams) (*gen.DeletedListEntry, error) {
	k := httpapi.Caller(ctx)
	err := a.store.DeleteListEntry(ctx, k.AccountID, httpapi.Visible(k), p.ListID)
	return &gen.DeletedListEntry{Object: "list_entry", ID: p.ListID, Deleted: true}, err
}

// ReleaseMessage implements POST /v1/messages/{message_id}/release.
func (a *API) ReleaseMessage(ctx context.Context, p gen.ReleaseMessageParams) (*gen.Message, error) {
	m, err := a.anyMessageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	if m.Status != store.MessageQuarantined || m.ExpiredAt != nil {
		return nil, httpapi.ErrNotFound
	}
	m, err = a.store.ReleaseMessage(ctx, m, func(n *store.NewMessage) {
		n.SubjectFold, n.ThreadSubject = foldSubject(m.Subject), foldSubject(reply.NormalizeSubject(m.Subject))
		n.ReplyMark = reply.HasReplyMark(m.Subject)
	})
	if errors.Is(err, store.ErrState) { // released, or dropped, meanwhile
		err = httpapi.ErrNotFound
	}
	return result(m, err, wholeMessage)
}

func listEntryToAPI(e store.ListEntry) *gen.ListEntry {
	return &gen.ListEntry{
		Object: "list_entry", ID: e.ID, Direction: string(e.Direction), Action: string(e.Action), Pattern: e.Pattern,
		InboxID: nilString(e.InboxID), CreatedBy: e.CreatedBy, CreatedAt: e.CreatedAt.Time,
	}
}
