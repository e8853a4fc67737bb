package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

const (
	waitDefault  = 30 * time.Second
	waitLookBack = time.Minute
)

// WaitForMessage implements GET /v1/inboxes/{inbox_id}/messages/wait. It
// subscribes before it looks, so that no message can come between looking and
// sleeping.
func (a *API) WaitForMessage(ctx context.Context, p gen.WaitForMessageParams) (*gen.WaitResult, error) {
	start := a.now()
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	f, err := a.waitFilter(ctx, in, p, start)
	if err != nil {
		return nil, err
	}
	wake := a.store.WakeInbox(in.Seq)
	defer wake.Stop()
	timeout := time.NewTimer(waitTimeout(p))
	defer timeout.Stop()

	res := &gen.WaitResult{Object: "wait_result", Message: gen.NilMessage{Null: true}, Since: f.Since.Time}
	for open := true; open; {
		m, err := a.store.FirstMessage(ctx, f)
		if err == nil {
			v, err := messageToAPI(m, withoutHTML)
			if err != nil {
				return nil, err
			}
			res.Message = gen.NewNilMessage(*v)
			break
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if _, err := a.store.Inbox(ctx, in.AccountID, in.ID); err != nil { // deleted meanwhile
			return nil, err
		}
		select {
		case <-wake.C:
		case <-timeout.C:
			open = false
		case <-a.cfg.Stopping:
			open = false
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	res.TimedOut = res.Message.Null
	res.WaitedMs = max(0, a.now().Sub(start).Milliseconds())
	return res, nil
}

func waitTimeout(p gen.WaitForMessageParams) time.Duration {
	if s, ok := p.Timeout.Get(); ok {
		return time.Duration(s) * time.Second
	}
	return waitDefault
}

func (a *API) waitFilter(ctx context.Context, in store.Inbox, p gen.WaitForMessageParams, start time.Time) (store.MessageFilter, error) {
	since := store.NewTime(start.Add(-waitLookBack))
	if t := sinceOf(p.Since); t != nil {
		since = *t
	}
	f := store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.Direction(p.Direction.Or(gen.WaitDirectionIn)),
		FromLike: fromLike(p.From), Subject: foldSubject(p.Subject.Or("")), Since: &since,
		HasCode: p.Has.Value == gen.WaitHasCode, HasLink: p.Has.Value == gen.WaitHasLink,
	}
	if id, ok := p.After.Get(); ok {
		m, err := a.messageOf(ctx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && m.InboxSeq != in.Seq {
			return f, errInvalid("after", "is not a message of this inbox")
		}
		if err != nil {
			return f, err
		}
		f.After = &m
	}
	return f, nil
}
