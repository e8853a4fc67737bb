package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

var errClaimLost = &httpapi.Error{
	Status: http.StatusConflict, Code: gen.ErrorCodeClaimLost, Param: "token",
	Message: "token: this claim is over: the message was handed out again, released or is done",
}

// UpdateMessage implements PATCH /v1/messages/{message_id}.
func (a *API) UpdateMessage(ctx context.Context, req *gen.Marks, p gen.UpdateMessageParams) (*gen.Message, error) {
	c, err := marksFromAPI(req)
	if err != nil {
		return nil, err
	}
	m, err := a.messageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	m, err = a.store.MarkMessage(ctx, m, c)
	return result(m, tooManyLabels(err), textMessage)
}

// UpdateThread implements PATCH /v1/threads/{thread_id}.
func (a *API) UpdateThread(ctx context.Context, req *gen.Marks, p gen.UpdateThreadParams) (*gen.Thread, error) {
	c, err := marksFromAPI(req)
	if err != nil {
		return nil, err
	}
	k := httpapi.Caller(ctx)
	t, err := a.store.MarkThread(ctx, k.AccountID, httpapi.Visible(k), p.ThreadID, c)
	return result(t, tooManyLabels(err), threadToAPI)
}

func tooManyLabels(err error) error {
	if errors.Is(err, store.ErrTooManyLabels) {
		return httpapi.Invalid("add_labels", "results in more than %d labels", store.MaxLabels)
	}
	return err
}

func marksFromAPI(req *gen.Marks) (c store.Marks, err error) {
	for _, list := range []struct {
		param string
		from  []gen.Label
		to    *[]string
	}{{"labels", req.Labels, &c.Labels}, {"add_labels", req.AddLabels, &c.Add}, {"remove_labels", req.RemoveLabels, &c.Remove}} {
		if list.from != nil {
			*list.to = make([]string, len(list.from))
		}
		for i, l := range list.from {
			if (*list.to)[i] = store.NormalizeLabel(string(l)); (*list.to)[i] == "" {
				return c, httpapi.Invalid(fmt.Sprintf("%s[%d]", list.param, i), "has no visible character")
			}
		}
	}
	if read, ok := req.Read.Get(); ok {
		c.Read = &read
	}
	return c, nil
}

// labelOf is the label of a filter, or empty.
func labelOf(label gen.OptLabel) string { return store.NormalizeLabel(string(label.Value)) }

const (
	// claimDefault is how long a claim lasts, unless the request says otherwise.
	claimDefault = 300
	// claimPoll is how often a call that waits for a message to claim looks for claims that
	// ended, and claimPollAll how often one that waits for several inboxes looks at all.
	claimPoll    = 5 * time.Second
	claimPollAll = time.Second
)

// ClaimMessage implements POST /v1/messages/claim.
func (a *API) ClaimMessage(ctx context.Context, req *gen.MessageClaim) (*gen.ClaimResult, error) {
	k := httpapi.Caller(ctx)
	f := store.MessageFilter{
		AccountID: k.AccountID, InboxIDs: httpapi.Visible(k), Direction: store.DirectionIn, FromLike: fromLike(gen.NewOptString(req.From.Or(""))), Subject: foldSubject(req.Subject.Or("")),
		ThreadID: req.ThreadID.Or(""), Since: sinceOf(req.Since), Label: labelOf(req.Label),
		HasCode: req.Has.Value == gen.MessageClaimHasCode, HasLink: req.Has.Value == gen.MessageClaimHasLink,
	}
	out := &gen.ClaimResult{Object: "claim_result", Message: gen.NilMessage{Null: true}, Claim: gen.NilClaim{Null: true}}
	poll, wake := claimPollAll, (<-chan struct{})(nil)
	if id, ok := req.InboxID.Get(); ok {
		in, err := a.filteredInbox(ctx, id)
		if err != nil {
			return nil, err
		}
		f.InboxSeq = in.Seq
		w := a.store.WakeMatching(f)
		defer w.Stop()
		poll, wake = claimPoll, w.C
	}
	waited := false
	err := a.await(ctx, wake, poll, time.Now().Add(time.Duration(req.Timeout.Or(0))*time.Second), func(bool) (bool, error) {
		if waited {
			if err := a.KeyStillGood(ctx); err != nil {
				return false, err
			}
		}
		waited = true
		m, c, err := a.store.ClaimMessage(ctx, f, claimSeconds(req.Seconds))
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		if err == nil {
			out.Message, out.Claim = gen.NewNilMessage(*textMessage(m)), gen.NewNilClaim(*claimToAPI(m, c, "claimed"))
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func claimToAPI(m store.Message, c store.MessageClaim, status string) *gen.Claim {
	out := &gen.Claim{Object: "claim", MessageID: m.ID, Status: status, Token: c.Token, ExpiresAt: gen.NilDateTime{Null: true}}
	if status == "claimed" {
		out.ExpiresAt = gen.NewNilDateTime(c.Until.Time)
	}
	return out
}

func claimSeconds(s gen.OptClaimSeconds) time.Duration {
	return time.Duration(s.Or(claimDefault)) * time.Second
}

// UpdateClaim implements POST /v1/messages/{message_id}/claim.
func (a *API) UpdateClaim(ctx context.Context, req *gen.ClaimUpdate, p gen.UpdateClaimParams) (*gen.Claim, error) {
	m, err := a.messageOf(ctx, p.MessageID)
	if err != nil {
		return nil, err
	}
	c, status := store.MessageClaim{Token: req.Token}, "claimed"
	switch req.Action {
	case gen.ClaimUpdateActionExtend:
		c, err = a.store.ExtendClaim(ctx, m, req.Token, claimSeconds(req.Seconds))
	case gen.ClaimUpdateActionRelease:
		status, err = "released", a.store.EndClaim(ctx, m, req.Token, false)
	case gen.ClaimUpdateActionDone:
		status, err = "done", a.store.EndClaim(ctx, m, req.Token, true)
	}
	if errors.Is(err, store.ErrState) {
		err = errClaimLost
	}
	return result(c, err, func(c store.MessageClaim) *gen.Claim { return claimToAPI(m, c, status) })
}
