package handlers

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// StopSending implements POST /v1/stop.
func (a *API) StopSending(ctx context.Context, req *gen.StopScope) (*gen.Stop, error) {
	out, scope, err := a.stopScope(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	at, err := a.store.Stop(ctx, httpapi.Caller(ctx).AccountID, scope)
	out.Stopped, out.At = true, at.Time
	return out, err
}

// ResumeSending implements POST /v1/resume.
func (a *API) ResumeSending(ctx context.Context, req *gen.StopScope) (*gen.Stop, error) {
	stopped, err := a.store.Stops(ctx, httpapi.Caller(ctx).AccountID)
	if err != nil {
		return nil, err
	}
	out, scope, err := a.stopScope(ctx, req, stopped)
	if err != nil {
		return nil, err
	}
	at, err := a.store.Resume(ctx, httpapi.Caller(ctx).AccountID, scope)
	out.At = at.Time
	return out, err
}

// stopScope returns what a request stops or resumes. An inbox that is in stopped may be
// deleted, and a key revoked: their mail still waits.
func (a *API) stopScope(ctx context.Context, req *gen.StopScope, stopped []string) (*gen.Stop, string, error) {
	out := &gen.Stop{Object: "stop", Scope: "account", InboxID: gen.NilString{Null: true}, KeyID: gen.NilString{Null: true}}
	if _, both := req.KeyID.Get(); both {
		if _, both = req.InboxID.Get(); both {
			return nil, "", httpapi.Invalid("key_id", "must not be given with inbox_id")
		}
	}
	waits := func(prefix, id string) bool { return strings.HasPrefix(id, prefix) && slices.Contains(stopped, id) }
	if id, ok := req.InboxID.Get(); ok {
		out.Scope, out.InboxID = "inbox", gen.NewNilString(id)
		if waits("ibx_", id) {
			return out, id, nil
		}
		_, err := a.filteredInbox(ctx, id)
		return out, id, err
	}
	if id, ok := req.KeyID.Get(); ok {
		out.Scope, out.KeyID = "key", gen.NewNilString(id)
		if waits("key_", id) {
			return out, id, nil
		}
		_, err := a.store.Key(ctx, httpapi.Caller(ctx).AccountID, id)
		return out, id, err
	}
	return out, store.StopAccount, nil
}
