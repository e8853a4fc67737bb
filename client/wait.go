package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/postroom/postroom/gen"
)

const (
	// maxWait is the longest that one call waits.
	maxWait = 120 * time.Second
	// firstWait and firstWithin are for a call that leaves the cut-off to the
	// server, a minute before the call comes in. It must come in, at the last try
	// too, less than a minute after it was meant to, or the cut-off would be after
	// that. What the call answers says the cut-off for the calls after it.
	firstWait   = 15 * time.Second
	firstWithin = 40 * time.Second
)

// Wait says which messages are waited for. The zero value means any that was
// received in the last minute or comes from now on.
type Wait struct {
	// From is the header From, an address, *@domain or *@*.domain.
	From string
	// Subject is a part of the subject. Case does not matter.
	Subject string
	// Has asks for messages with an extracted code or link.
	Has gen.WaitHas
	// Direction is gen.WaitDirectionIn unless set.
	Direction gen.WaitDirection
	// Since leaves out what was received (in) or created (out) before it. The
	// default is one minute before the call, by the server's clock.
	Since time.Time
	// After is the id of a message. Only later ones match.
	After string
}

// WaitForMessage returns the oldest message that matches, as soon as there is
// one. It waits until ctx ends, with as many calls as that takes; no message is
// lost between them. The message's HTML is null: GetMessage has it.
func (c *Client) WaitForMessage(ctx context.Context, inboxID string, w Wait) (*gen.Message, error) {
	for m, err := range c.NewMessages(ctx, inboxID, w) {
		if err != nil {
			return nil, err
		}
		return &m, nil
	}
	return nil, errors.New("postroom: no message, and no error") // NewMessages ends with an error alone
}

// WaitForCode returns the code to type in of the first matching message that has
// one. Messages whose code is in doubt are passed over.
func (c *Client) WaitForCode(ctx context.Context, inboxID string, w Wait) (string, error) {
	m, err := c.waitForCode(ctx, inboxID, w)
	if err != nil {
		return "", err
	}
	return m.Extracted.Value.Otp.Value, nil
}

func (c *Client) waitForCode(ctx context.Context, inboxID string, w Wait) (*gen.Message, error) {
	w.Has = gen.WaitHasCode
	for m, err := range c.NewMessages(ctx, inboxID, w) {
		if err != nil {
			return nil, err
		}
		if otp, ok := m.Extracted.Value.Otp.Get(); ok && otp != "" {
			return &m, nil
		}
	}
	return nil, errors.New("postroom: no message, and no error") // as above
}

// NewMessages ranges over the messages that match, oldest first, each once, and
// waits for more until ctx ends. Its last pair is always an error. The messages
// may be deleted while the loop goes on.
func (c *Client) NewMessages(ctx context.Context, inboxID string, w Wait) iter.Seq2[gen.Message, error] {
	return func(yield func(gen.Message, error) bool) {
		f := follower{client: c, inbox: inboxID, wait: w}
		for {
			m, err := f.next(ctx)
			if err != nil {
				yield(gen.Message{}, fmt.Errorf("wait for a message in %s: %w", inboxID, err))
				return
			}
			if m != nil && !yield(*m, nil) {
				return
			}
		}
	}
}

// follower goes from one message to the next.
type follower struct {
	client *Client
	inbox  string
	wait   Wait
	// last is when the newest of seen came, and seen all that came at that
	// moment: they tell what is new when the last one is deleted, and After of no
	// use.
	last time.Time
	seen []string
	// answered is set by the first call, and failed counts those in a row since
	// that could not be made, as while the server starts again.
	answered bool
	failed   int
}

// maxFailed is how many such calls, each tried more than once, end the wait:
// after some two minutes.
const maxFailed = 8

// next makes one call. It returns nil when that has found nothing new, or is
// worth another.
func (f *follower) next(ctx context.Context) (*gen.Message, error) {
	p, callCtx := f.params(ctx)
	res, err := unwrap(f.client.api.WaitForMessage(callCtx, p))
	if err != nil {
		return nil, f.goOn(ctx, err)
	}
	f.answered, f.failed = true, 0
	if f.wait.Since.IsZero() {
		f.wait.Since = res.Since
	}
	m, ok := res.Message.Get()
	if ok && f.take(m) {
		return &m, nil
	}
	asked := time.Duration(p.Timeout.Value) * time.Second
	if !ok && time.Duration(res.WaitedMs)*time.Millisecond < asked/2 { // the server is about to stop
		return nil, f.client.caller.sleep(ctx, firstPause)
	}
	return nil, nil //nolint:nilnil // nothing new came within this call
}

// goOn returns nil when the next call may do better than the one that ended with
// err, after a pause where it needs one.
func (f *follower) goOn(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	refused, ok := errors.AsType[*Error](err)
	if ok && refused.Code == ErrInvalidRequest && refused.Param == "after" && !f.last.IsZero() {
		f.wait.After, f.wait.Since = "", f.last // the message is deleted
		return nil
	}
	pause, again := pauseAfter(err, f.failed+1)
	if f.failed++; !f.answered || !again || f.failed > maxFailed {
		return err
	}
	return f.client.caller.sleep(ctx, pause)
}

// take remembers the message, and says whether it is new.
func (f *follower) take(m gen.Message) bool {
	f.wait.After = m.ID
	at := m.ReceivedAt.Or(m.CreatedAt)
	if slices.Contains(f.seen, m.ID) {
		return false
	}
	if !at.Equal(f.last) {
		f.last, f.seen = at, nil
	}
	f.seen = append(f.seen, m.ID)
	return true
}

// params are those of the next call, and its context.
func (f *follower) params(ctx context.Context) (gen.WaitForMessageParams, context.Context) {
	longest, p := maxWait, gen.WaitForMessageParams{InboxID: f.inbox}
	if f.wait.Since.IsZero() {
		longest, ctx = firstWait, context.WithValue(ctx, withinKey{}, firstWithin)
	} else {
		p.Since = gen.NewOptDateTime(f.wait.Since)
	}
	if deadline, ok := ctx.Deadline(); ok {
		longest = max(time.Second, min(longest, time.Until(deadline)))
	}
	p.Timeout = gen.NewOptInt(int(longest / time.Second))
	setIf(f.wait.From, p.From.SetTo)
	setIf(f.wait.Subject, p.Subject.SetTo)
	setIf(f.wait.After, p.After.SetTo)
	setIf(f.wait.Has, p.Has.SetTo)
	setIf(f.wait.Direction, p.Direction.SetTo)
	return p, ctx
}

// setIf sets what is not empty.
func setIf[T ~string](v T, set func(T)) {
	if v != "" {
		set(v)
	}
}
