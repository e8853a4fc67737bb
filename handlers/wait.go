package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// WaitForMessage implements GET /v1/inboxes/{inbox_id}/messages/wait. It
// subscribes before the first query, so that it cannot miss a message in
// between.
func (a *API) WaitForMessage(ctx context.Context, p gen.WaitForMessageParams) (out gen.WaitOrCode, err error) {
	if err := checkView(ctx, p.View); err != nil {
		return out, err
	}
	start := a.now()
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return out, err
	}
	f, err := a.waitFilter(ctx, in, p, start)
	if err != nil {
		return out, err
	}
	m, err := a.firstMessage(ctx, in, f, waitTimeout(p))
	if err != nil {
		return out, err
	}
	if m != nil {
		if err := a.KeyStillGood(ctx); err != nil {
			return out, err
		}
	}
	next := waitNext(m, p.After, f.Since.Time)
	if p.View.Set {
		out.SetCodeResult(*codeResult(m, next))
		return out, nil
	}
	res := gen.WaitResult{
		Object: "wait_result", TimedOut: m == nil, Message: gen.NilMessage{Null: true}, Since: f.Since.Time,
		WaitedMs: max(0, a.now().Sub(start).Milliseconds()), Next: next,
	}
	if m != nil {
		v, err := messageToAPI(*m, withText)
		if err != nil {
			return out, err
		}
		res.Message = gen.NewNilMessage(*v)
	}
	out.SetWaitResult(res)
	return out, nil
}

// firstMessage returns the oldest match, with f.HasCode the newest, as soon as
// there is one. It queries all messages once, and then at each change only newer
// ones. At the timeout or when the service stops, it queries all once more and
// returns nil if there is still no match.
func (a *API) firstMessage(ctx context.Context, in store.Inbox, f store.MessageFilter, timeout time.Duration) (*store.Message, error) {
	wake := a.store.WakeInbox(in.Seq)
	defer wake.Stop()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	all := f
	for last := false; ; {
		newest, err := a.store.NewestIn(ctx, in.Seq)
		if err != nil { // deleted meanwhile
			return nil, err
		}
		m, err := a.nextMessage(ctx, f)
		if err == nil {
			return &m, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if last {
			return nil, nil //nolint:nilnil // no match is no error here
		}
		if newest.Seq != 0 && (f.After == nil || f.After.Before(newest)) {
			f.After = &newest // the messages up to here do not match
		}
		select {
		case <-wake.C:
		case <-timer.C:
			last, f = true, all
		case <-a.cfg.Stopping:
			last, f = true, all
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// nextMessage returns the message for a wait. Helpers that remember which codes
// they returned get each only once.
func (a *API) nextMessage(ctx context.Context, f store.MessageFilter) (store.Message, error) {
	for {
		m, err := a.store.FirstMessage(ctx, f)
		if err != nil || !httpapi.IsEachCodeOnce(ctx) {
			return m, err
		}
		first, err := a.store.TakeCode(ctx, m.AccountID, httpapi.Caller(ctx).ID, m.ID)
		if first || err != nil {
			return m, err
		}
		f.After = m.Place()
	}
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
		HasCode: p.Has.Value == gen.WaitHasCode || p.View.Set && !p.Has.Set, HasLink: p.Has.Value == gen.WaitHasLink,
	}
	if id, ok := p.After.Get(); ok {
		place, err := a.store.Place(ctx, in.Seq, id)
		if errors.Is(err, store.ErrNotFound) {
			return f, httpapi.Invalid("after", "message %s not found in this inbox", id)
		}
		if err != nil {
			return f, err
		}
		f.After = &place
		if !p.Since.Set {
			f.Since = &place.CreatedAt // no message after it is too old
		}
	}
	return f, nil
}
