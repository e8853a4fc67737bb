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
	// maxWait is the longest wait of one call.
	maxWait = 120 * time.Second
	// firstWait and firstWithin apply to calls without Since, for which the
	// server uses a cut-off one minute before the call arrives. All retries
	// must arrive within that minute, or the cut-off would be later than the
	// start of the wait. The response contains the cut-off for later calls.
	firstWait   = 15 * time.Second
	firstWithin = 40 * time.Second
)

// Wait selects messages. The zero value selects messages received in the last
// minute or later.
type Wait struct {
	// From matches the header From: an address, *@domain or *@*.domain.
	From string
	// Subject is part of the subject, ignoring case.
	Subject string
	// Has selects messages with an extracted code or link.
	Has gen.WaitHas
	// Direction defaults to gen.WaitDirectionIn.
	Direction gen.WaitDirection
	// Since excludes messages received (in) or created (out) before it. The
	// default is one minute before the call, by the server's clock.
	Since time.Time
	// After is the id of a message. Only later messages match.
	After string
}

// WaitForMessage returns the oldest matching message as soon as there is one.
// It waits until ctx ends, with as many calls as necessary, and misses no
// message between them. The HTML of the message is null; GetMessage returns it.
func (c *Client) WaitForMessage(ctx context.Context, inboxID string, w Wait) (*gen.Message, error) {
	for m, err := range c.NewMessages(ctx, inboxID, w) {
		if err != nil {
			return nil, err
		}
		return &m, nil
	}
	return nil, errors.New("postroom: no message, and no error") // NewMessages ends only with an error
}

// WaitForCode returns the one-time code of the first matching message that has
// one. It skips messages with an ambiguous code.
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

// NewMessages ranges over the matching messages, oldest first, each once, and
// waits for more until ctx ends. The last pair is always an error. The loop may
// delete the messages.
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

// follower iterates over the messages.
type follower struct {
	client *Client
	inbox  string
	wait   Wait
	// last is the time of the newest message, and seen lists the messages of
	// that time. They identify new messages if the last one is deleted, so that
	// After no longer works.
	last time.Time
	seen []string
	// answered is set after the first response. failed counts consecutive
	// failed calls, for example while the server restarts.
	answered bool
	failed   int
}

// maxFailed is the number of consecutive failed calls, each with its own
// retries, that ends the wait, after about two minutes.
const maxFailed = 8

// next makes one call. It returns nil if there is nothing new or the call
// should be repeated.
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
	if !ok && time.Duration(res.WaitedMs)*time.Millisecond < asked/2 { // the server is stopping
		return nil, f.client.caller.sleep(ctx, firstPause)
	}
	return nil, nil //nolint:nilnil // nothing new came within this call
}

// goOn returns nil if the next call may succeed despite err. It pauses first if
// necessary.
func (f *follower) goOn(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	refused, ok := errors.AsType[*Error](err)
	if ok && refused.Code == ErrInvalidRequest && refused.Param == "after" && !f.last.IsZero() {
		f.wait.After, f.wait.Since = "", f.last // the message was deleted
		return nil
	}
	pause, again := pauseAfter(err, f.failed+1)
	if f.failed++; !f.answered || !again || f.failed > maxFailed {
		return err
	}
	return f.client.caller.sleep(ctx, pause)
}

// take records the message and reports whether it is new.
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

// params returns the parameters and the context of the next call.
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

// setIf calls set unless v is empty.
func setIf[T ~string](v T, set func(T)) {
	if v != "" {
		set(v)
	}
}
