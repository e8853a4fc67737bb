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

// wait is a running WaitForMessage.
type wait struct {
	start time.Time // by the clock of the service
	ends  time.Time // by the wall clock, as all socket deadlines
	all   store.MessageFilter
	newer store.MessageFilter // all, without those that are known not to match
	wake  *store.Wake
}

// WaitForMessage implements GET /v1/inboxes/{inbox_id}/messages/wait. It
// subscribes before the first query, so that it cannot miss a message in
// between.
func (a *API) WaitForMessage(ctx context.Context, p gen.WaitForMessageParams) (out gen.WaitOrCode, err error) {
	w, err := a.beginWait(ctx, p)
	if err != nil {
		return out, err
	}
	defer w.wake.Stop()
	m, err := a.firstMessage(ctx, w)
	if err != nil {
		return out, err
	}
	if m != nil {
		if err := a.KeyStillGood(ctx); err != nil {
			return out, err
		}
	}
	next := waitNext(m, p.After, w.all.Since.Time)
	var older gen.OptOlderMatches
	if m == nil && !p.After.Set {
		if older, err = a.olderMatches(ctx, w.all); err != nil {
			return out, err
		}
	}
	if p.View.Set {
		res := codeResult(m, next)
		res.Older = older
		out.SetCodeResult(*res)
		return out, nil
	}
	res := gen.WaitResult{
		Object: "wait_result", TimedOut: m == nil, Message: gen.NilMessage{Null: true}, Since: w.all.Since.Time,
		WaitedMs: max(0, a.now().Sub(w.start).Milliseconds()), Older: older, Next: next,
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

// olderMatches says that the inbox has matches from before the cut-off, so that nobody
// believes that they are lost.
func (a *API) olderMatches(ctx context.Context, f store.MessageFilter) (out gen.OptOlderMatches, err error) {
	times, err := a.store.OlderMatches(ctx, f)
	if len(times) > 0 {
		out.SetTo(gen.OlderMatches{Count: len(times), Newest: times[0].Time})
	}
	return out, err
}

// beginWait checks the parameters of a wait and subscribes.
func (a *API) beginWait(ctx context.Context, p gen.WaitForMessageParams) (*wait, error) {
	if err := checkView(ctx, p.View); err != nil {
		return nil, err
	}
	w := &wait{start: a.now()}
	in, err := a.inboxOf(ctx, p.InboxID)
	if err != nil {
		return nil, err
	}
	if w.all, err = a.waitFilter(ctx, in, p, w.start); err != nil {
		return nil, err
	}
	w.newer, w.ends = w.all, time.Now().Add(waitTimeout(p))
	w.wake = a.store.WakeMatching(w.all)
	return w, nil
}

// firstMessage returns the oldest match, with a filter for codes the newest, as soon
// as there is one. It queries all messages once, and then at each change only newer
// ones. At the timeout or when the service stops, it queries all once more. At the
// timeout it returns nil if there is still no match.
func (a *API) firstMessage(ctx context.Context, w *wait) (*store.Message, error) {
	timer := time.NewTimer(time.Until(w.ends))
	defer timer.Stop()
	var end error
	for last := false; ; {
		if last {
			w.newer = w.all
		}
		m, err := a.lookForNewer(ctx, w)
		if m != nil || err != nil {
			return m, err
		}
		if last {
			return nil, end
		}
		select {
		case <-w.wake.C:
		case <-timer.C:
			last = true
		case <-a.cfg.Stopping:
			last, end = true, httpapi.ErrStopping
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lookForNewer queries the newer messages. Without a match it returns nil and notes
// which messages are known now.
func (a *API) lookForNewer(ctx context.Context, w *wait) (*store.Message, error) {
	newest, err := a.store.NewestIn(ctx, w.all.InboxSeq)
	if err != nil { // deleted meanwhile
		return nil, err
	}
	m, err := a.nextMessage(ctx, w.newer)
	if err == nil {
		return &m, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if newest.Seq != 0 && (w.newer.After == nil || w.newer.After.Before(newest)) {
		w.newer.After = &newest
	}
	return nil, nil //nolint:nilnil // no match is not an error here
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
