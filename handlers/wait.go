package handlers

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// WaitForMessage implements GET /v1/inboxes/{inbox_id}/messages/wait. It returns the
// oldest match, with a filter for codes the newest, as soon as there is one. It
// subscribes before the first query, so that it cannot miss a message in between. It
// queries all messages once, then at each change only newer ones, and at the end all
// once more.
func (a *API) WaitForMessage(ctx context.Context, p gen.WaitForMessageParams) (out gen.WaitOrCode, err error) {
	if err := checkView(ctx, p.View); err != nil {
		return out, err
	}
	start, ends := a.now(), time.Now().Add(time.Duration(p.Timeout.Or(waitDefault))*time.Second)
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return out, err
	}
	all, err := a.waitFilter(ctx, in, p, start)
	if err != nil {
		return out, err
	}
	wake := a.store.WakeMatching(all)
	defer wake.Stop()
	var m *store.Message
	newer := all // without those that are known not to match
	err = a.await(ctx, wake.C, time.Hour, ends, func(last bool) (bool, error) {
		if last {
			newer = all
		}
		newest, err := a.store.NewestIn(ctx, in.Seq)
		if err != nil { // deleted meanwhile
			return false, err
		}
		match, err := a.nextMessage(ctx, newer)
		if !errors.Is(err, store.ErrNotFound) {
			m = &match
			return err == nil, err
		}
		if newest.Seq != 0 && (newer.After == nil || newer.After.Before(newest)) {
			newer.After = &newest
		}
		return false, nil
	})
	if err == nil && m != nil {
		err = a.KeyStillGood(ctx)
	}
	var older gen.OptOlderMatches
	if err == nil && m == nil && !p.After.Set {
		older, err = a.olderMatches(ctx, all)
	}
	if err != nil {
		return out, err
	}
	next := waitNext(m, p.After, all.Since.Time)
	if p.View.Set {
		res := codeResult(m, next)
		res.Older = older
		out.SetCodeResult(*res)
		return out, nil
	}
	res := gen.WaitResult{
		Object: "wait_result", TimedOut: m == nil, Message: gen.NilMessage{Null: true}, Since: all.Since.Time,
		WaitedMs: max(0, a.now().Sub(start).Milliseconds()), Older: older, Next: next,
	}
	if m != nil {
		res.Message = gen.NewNilMessage(*textMessage(*m))
	}
	out.SetWaitResult(res)
	return out, nil
}

// olderMatches says that the inbox has matches from before the cut-off, so that nobody
// believes that they are lost.
func (a *API) olderMatches(ctx context.Context, f store.MessageFilter) (out gen.OptOlderMatches, err error) {
	times, err := a.store.OlderMatches(ctx, f)
	if len(times) > 0 {
		out.SetTo(gen.OlderMatches{Count: len(times), Newest: times[0].Time})
	}
	return out, err
}

// nextMessage returns the message for a wait. Helpers that remember which codes
// they returned get each only once.
func (a *API) nextMessage(ctx context.Context, f store.MessageFilter) (store.Message, error) {
	for {
		m, err := a.store.FirstMessage(ctx, f)
		if err != nil || !httpapi.SpecialOf(ctx).EachCodeOnce {
			return m, err
		}
		first, err := a.store.TakeCode(ctx, m.AccountID, httpapi.Caller(ctx).ID, m.ID)
		if first || err != nil {
			return m, err
		}
		f.After = m.Place()
	}
}

func (a *API) waitFilter(ctx context.Context, in store.Inbox, p gen.WaitForMessageParams, start time.Time) (store.MessageFilter, error) {
	since := store.NewTime(start.Add(-waitLookBack))
	if t := sinceOf(p.Since); t != nil {
		since = *t
	}
	f := store.MessageFilter{
		AccountID: in.AccountID, InboxSeq: in.Seq, Direction: store.Direction(p.Direction.Or(gen.WaitDirectionIn)),
		FromLike: fromLike(p.From), Subject: foldSubject(p.Subject.Or("")), Since: &since,
		HasCode: p.Has.Value == gen.WaitHasCode || p.View.Set && !p.Has.Set, HasLink: p.Has.Value == gen.WaitHasLink, Safety: mail.SafetyLevel(p.Safety.Value),
	}
	if id, ok := p.After.Get(); ok {
		place, err := a.store.Place(ctx, in.Seq, id)
		if errors.Is(err, store.ErrNotFound) {
			return f, httpapi.Invalid("after", "%s", cmp.Or(ids.Typo(id), "message "+id+" not found in this inbox"))
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
