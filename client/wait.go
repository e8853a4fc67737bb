package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
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
	// lastCall bounds the call after the deadline.
	lastCall = 2 * time.Second
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

// WaitTimeout is the error of a wait that found nothing until the deadline of its
// context. It wraps context.DeadlineExceeded.
type WaitTimeout struct {
	InboxID string
	// Since is the cut-off of the wait, and Older the number of matching messages before
	// it, at most 100. Newest is when the newest of them arrived; pass it as Wait.Since
	// to get them.
	Since, Newest time.Time
	Older         int
}

func (e *WaitTimeout) Error() string {
	text := "no matching message arrived in " + e.InboxID
	if e.Older > 0 {
		text += fmt.Sprintf(" since %s; %d older, the newest of %s: pass since=%[3]s to include it",
			e.Since.Format(time.RFC3339), e.Older, e.Newest.Format(time.RFC3339Nano))
	}
	return text
}

// Unwrap returns context.DeadlineExceeded.
func (e *WaitTimeout) Unwrap() error { return context.DeadlineExceeded }

// WaitForMessage returns the oldest matching message as soon as there is one; with
// gen.WaitHasCode the newest, because a new code replaces the ones before. It
// waits until ctx ends, with as many calls as necessary, and misses no message
// between them. The HTML of the message is null; GetMessage returns it.
func (c *Client) WaitForMessage(ctx context.Context, inboxID string, w Wait) (*gen.Message, error) {
	f := follower{client: c, inbox: inboxID, wait: w}
	found, err := f.first(ctx, func(match) bool { return true })
	if err != nil {
		return nil, err
	}
	return found.message, nil
}

// WaitForCode returns the newest one-time code of the matching messages. It skips
// messages with an ambiguous code, and returns the code of each message only
// once: after you asked a service for a second code, call it again. It never sees
// other text of the sender, and the scope codes:read is enough.
func (c *Client) WaitForCode(ctx context.Context, inboxID string, w Wait) (string, error) {
	code, err := c.WaitForReceivedCode(ctx, inboxID, w)
	if err != nil {
		return "", err
	}
	return code.Otp.Value, nil
}

// WaitForReceivedCode is WaitForCode and says also where the code comes from. With
// Wait.Has set to gen.WaitHasLink it returns the next message with an action link
// instead.
func (c *Client) WaitForReceivedCode(ctx context.Context, inboxID string, w Wait) (*gen.ReceivedCode, error) {
	if w.Has == "" {
		w.Has = gen.WaitHasCode
	}
	f := follower{client: c, inbox: inboxID, wait: w, codes: true}
	found, err := f.first(ctx, func(m match) bool {
		value := m.code.Otp
		if w.Has == gen.WaitHasLink {
			value = m.code.ActionLink
		}
		return value.Value != "" && c.taken.take(m.id)
	})
	if err != nil {
		return nil, err
	}
	return found.code, nil
}

// taken remembers the messages whose codes were returned.
type taken struct {
	mu  sync.Mutex
	ids []string
}

// maxTaken is the number of messages to remember.
const maxTaken = 1000

// take reports whether it is called with the message for the first time.
func (t *taken) take(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.ids, id) {
		return false
	}
	if len(t.ids) == maxTaken {
		t.ids = slices.Delete(t.ids, 0, maxTaken/2)
	}
	t.ids = append(t.ids, id)
	return true
}

// SkipCodes makes WaitForCode skip the codes of these messages, as if it had
// returned them. A program that restarts passes the messages of its last run.
func (c *Client) SkipCodes(messageIDs ...string) {
	for _, id := range messageIDs {
		c.taken.take(id)
	}
}

// GetMessage returns a message, including its HTML.
func (c *Client) GetMessage(ctx context.Context, params gen.GetMessageParams, options ...gen.RequestOption) (*gen.Message, error) {
	params.View.Reset()
	res, err := c.Client.GetMessage(ctx, params, options...)
	if err != nil {
		return nil, err
	}
	return &res.Message, nil
}

// GetCode returns the code of a message without the message. The scope codes:read
// is enough.
func (c *Client) GetCode(ctx context.Context, messageID string) (*gen.ReceivedCode, error) {
	res, err := c.Client.GetMessage(ctx, gen.GetMessageParams{MessageID: messageID, View: gen.NewOptMessageView(gen.MessageViewCode)})
	if err != nil {
		return nil, err
	}
	return &res.CodeResult.Code.Value, nil
}

// NewMessages ranges over the matching messages, oldest first, each once, and
// waits for more until ctx ends. The last pair is always an error. The loop may
// delete the messages.
func (c *Client) NewMessages(ctx context.Context, inboxID string, w Wait) iter.Seq2[gen.Message, error] {
	// The server skips all but the newest message with a code, so ask for all.
	onlyCodes := w.Has == gen.WaitHasCode
	if onlyCodes {
		w.Has = ""
	}
	return func(yield func(gen.Message, error) bool) {
		f := follower{client: c, inbox: inboxID, wait: w}
		for {
			found, err := f.first(ctx, func(m match) bool { return !onlyCodes || len(m.message.Extracted.Value.Codes) > 0 })
			if err != nil {
				yield(gen.Message{}, err)
				return
			}
			if !yield(*found.message, nil) {
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
	codes  bool // ask for codes without their messages
	// last is the time of the newest message, and seen lists the messages of
	// that time. They identify new messages if the last one is deleted, so that
	// After no longer works.
	last time.Time
	seen []string
	// responded is set after the first response. failed counts consecutive
	// failed calls, for example while the server restarts.
	responded bool
	failed    int
}

// maxFailed is the number of consecutive failed calls, each with its own
// retries, that ends the wait, after about two minutes.
const maxFailed = 8

// match is a message that a call returned, or its code.
type match struct {
	id      string
	at      time.Time
	message *gen.Message
	code    *gen.ReceivedCode
}

// first returns the next new message that suits.
func (f *follower) first(ctx context.Context, suits func(match) bool) (match, error) {
	for {
		m, err := f.next(ctx)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil && f.wait.After == "" {
			return match{}, f.timeout(ctx)
		}
		if err != nil {
			return match{}, fmt.Errorf("wait for a message in %s: %w", f.inbox, err)
		}
		if m != nil && suits(*m) {
			return *m, nil
		}
	}
}

// next makes one call. It returns nil if there is nothing new or the call
// should be repeated.
func (f *follower) next(ctx context.Context) (*match, error) {
	p, callCtx := f.params(ctx)
	start := time.Now()
	res, err := f.client.Client.WaitForMessage(callCtx, p)
	if err != nil {
		return nil, f.goOn(ctx, err)
	}
	if f.codes != (res.Type == gen.CodeResultWaitOrCode) {
		return nil, fmt.Errorf("the server returned a %s", res.Type) // an older one, which ignores the view
	}
	f.responded, f.failed = true, 0
	next, waited, m := res.WaitResult.Next, time.Duration(res.WaitResult.WaitedMs)*time.Millisecond, matchOf(res)
	if f.codes {
		next, waited = res.CodeResult.Next, time.Since(start)
	}
	if f.wait.Since.IsZero() {
		f.wait.Since = next.Since
	}
	if m != nil && f.take(*m) {
		return m, nil
	}
	asked := time.Duration(p.Timeout.Value) * time.Second
	if m == nil && waited < asked/2 { // the server is stopping
		return nil, f.client.caller.sleep(ctx, firstPause)
	}
	return nil, nil //nolint:nilnil // nothing new came within this call
}

// timeout asks once more, so that the error says whether there are older messages.
func (f *follower) timeout(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCall)
	defer cancel()
	e := &WaitTimeout{InboxID: f.inbox, Since: f.wait.Since}
	p, ctx := f.params(ctx)
	p.Timeout.SetTo(0)
	res, err := f.client.Client.WaitForMessage(ctx, p)
	if err != nil {
		return e // without what only this call could add
	}
	older, since := res.WaitResult.Older, res.WaitResult.Next.Since
	if f.codes {
		older, since = res.CodeResult.Older, res.CodeResult.Next.Since
	}
	e.Since, e.Older, e.Newest = since, older.Value.Count, older.Value.Newest
	return e
}

// matchOf returns the message or the code of a response, or nil after a timeout.
func matchOf(res gen.WaitOrCode) *match {
	if code, ok := res.CodeResult.Code.Get(); ok && res.Type == gen.CodeResultWaitOrCode {
		return &match{id: code.MessageID, at: code.ReceivedAt, code: &code}
	}
	if m, ok := res.WaitResult.Message.Get(); ok && res.Type == gen.WaitResultWaitOrCode {
		return &match{id: m.ID, at: m.ReceivedAt.Or(m.CreatedAt), message: &m}
	}
	return nil
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
	if f.failed++; !f.responded || !again || f.failed > maxFailed {
		return err
	}
	return f.client.caller.sleep(ctx, pause)
}

// take records the message and reports whether it is new.
func (f *follower) take(m match) bool {
	f.wait.After = m.id
	if slices.Contains(f.seen, m.id) {
		return false
	}
	if !m.at.Equal(f.last) {
		f.last, f.seen = m.at, nil
	}
	f.seen = append(f.seen, m.id)
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
	if f.codes {
		p.View = gen.NewOptMessageView(gen.MessageViewCode)
	}
	return p, ctx
}

// setIf calls set unless v is empty.
func setIf[T ~string](v T, set func(T)) {
	if v != "" {
		set(v)
	}
}
