package handlers

import (
	"context"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

var _ gen.AgentsHandler = (*API)(nil)

// StopSending implements POST /v1/stop.
func (a *API) StopSending(ctx context.Context, req *gen.StopScope) (*gen.Stop, error) {
	out, scope, err := a.stopScope(ctx, req)
	if err != nil {
		return nil, err
	}
	at, err := a.store.Stop(ctx, httpapi.Caller(ctx).AccountID, scope)
	out.Stopped, out.At = true, at.Time
	return out, err
}

// ResumeSending implements POST /v1/resume.
func (a *API) ResumeSending(ctx context.Context, req *gen.StopScope) (*gen.Stop, error) {
	out, scope, err := a.stopScope(ctx, req)
	if err != nil {
		return nil, err
	}
	at, err := a.store.Resume(ctx, httpapi.Caller(ctx).AccountID, scope)
	out.At = at.Time
	return out, err
}

// stopScope returns what a request stops or resumes.
func (a *API) stopScope(ctx context.Context, req *gen.StopScope) (*gen.Stop, string, error) {
	out := &gen.Stop{Object: "stop", Scope: "account", InboxID: gen.NilString{Null: true}, KeyID: gen.NilString{Null: true}}
	if _, both := req.KeyID.Get(); both {
		if _, both = req.InboxID.Get(); both {
			return nil, "", httpapi.Invalid("key_id", "must not be given with inbox_id")
		}
	}
	if id, ok := req.InboxID.Get(); ok {
		in, err := a.filteredInbox(ctx, id)
		out.Scope, out.InboxID = "inbox", gen.NewNilString(in.ID)
		return out, in.ID, err
	}
	if id, ok := req.KeyID.Get(); ok {
		k, err := a.store.Key(ctx, httpapi.Caller(ctx).AccountID, id)
		out.Scope, out.KeyID = "key", gen.NewNilString(k.ID)
		return out, k.ID, err
	}
	return out, store.StopAccount, nil
}
