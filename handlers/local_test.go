package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// A person decides drafts under their own id. A page counts as one request,
// even with many calls.
func TestPersonCallsTheAPI(t *testing.T) {
	s := serve(t, func(c *handlers.Config) { c.RateLimits = true })
	api, err := httpapi.NewLocalClient(s.web.Config.Handler)
	must(t, err)
	ctx := httpapi.AsPerson(t.Context(), httpapi.Person{Seq: 1, AccountID: s.account, ID: "usr_1", Role: store.RoleAdmin})
	in, err := api.CreateInbox(ctx, gen.NewOptInboxCreate(gen.InboxCreate{SendPolicy: gen.NewOptSendPolicy(gen.SendPolicyApproval)}), gen.CreateInboxParams{})
	must(t, err)
	draft := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"a@b.example","subject":"s","text":"t"}`)
	draft.want(t, http.StatusAccepted)
	got, err := api.RejectDraft(ctx, gen.OptDraftReject{}, gen.RejectDraftParams{DraftID: draft.str(t, "id")})
	if err != nil || got.DecidedBy.Or("") != "usr_1" {
		t.Errorf("rejected: %+v, %v; want it by usr_1", got, err)
	}
	person := httpapi.Person{Seq: 1, AccountID: s.account, ID: "usr_1", Role: store.RoleAdmin}
	page := func() error { // three calls, one request
		ctx := httpapi.AsPerson(t.Context(), person)
		for range 3 {
			if _, err := api.GetUsage(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for range 599 {
		must(t, page())
	}
	var refused *gen.ErrorStatusCodeWithHeaders
	err = page()
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusTooManyRequests {
		t.Errorf("page 601 of a minute: %v, want 429", err)
	}
}

// No request from outside becomes a local call.
func TestLocalCallNeedsACaller(t *testing.T) {
	s := serve(t)
	api, err := httpapi.NewLocalClient(s.web.Config.Handler)
	must(t, err)
	if _, err := api.GetUsage(context.Background()); err == nil {
		t.Error("a call without a caller was served")
	}
	s.do(t, http.MethodGet, "/v1/usage", "", as("local")).want(t, http.StatusUnauthorized)
	if httpapi.May(context.Background(), gen.GetUsageOperation, false) {
		t.Error("May is true without a caller")
	}
}
