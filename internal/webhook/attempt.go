package webhook

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/store"
)

// Reasons why a delivery ends or is deferred without an attempt.
const (
	faultEventGone = "the event has expired"
	faultGone      = "the resource of the event was deleted"
	faultOurs      = "the event could not be read"
	reasonGone     = "the endpoint returned 410 Gone"
)

// Test sends a test event to the endpoint now, whether it is enabled or not,
// and returns the result. A test is not retried and does not affect the
// endpoint's health.
func (d *Dispatcher) Test(ctx context.Context, w store.Webhook) (store.DeliveryResult, error) {
	c, err := d.cfg.Store.StartTest(ctx, w, d.cfg.Lease)
	if err != nil {
		return store.DeliveryResult{}, err
	}
	r := d.attempt(ctx, c)
	if r.Untried { // the caller has canceled
		r = failed(resultOf(c), "the test was broken off")
	}
	d.record(ctx, c, r)
	return r, nil
}

// resultOf returns a result of the claim, which the caller completes.
func resultOf(c store.ClaimedDelivery) store.DeliveryResult {
	return store.DeliveryResult{Seq: c.Seq, EndpointSeq: c.EndpointSeq, Fence: c.Fence, Status: store.DeliveryFailed}
}

// attempt makes one attempt and returns the result to record.
func (d *Dispatcher) attempt(ctx context.Context, c store.ClaimedDelivery) store.DeliveryResult {
	r := resultOf(c)
	if c.Event == nil {
		return failed(r, faultEventGone)
	}
	body, prefix, err := d.compose(ctx, c.Webhook, *c.Event)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return failed(r, faultGone)
	case err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrUnavailable)):
		return untried(r)
	case err != nil:
		d.cfg.Log.ErrorContext(ctx, "cannot compose a webhook", "delivery_id", c.ID, "event_id", c.EventID, "error", err)
		return d.again(failed(r, faultOurs), c, 0)
	}
	defer d.held.Release(weight(body))
	header, err := d.sign(c.Webhook, *c.Event, prefix, body)
	if err != nil {
		d.cfg.Log.ErrorContext(ctx, "cannot sign a webhook", "delivery_id", c.ID, "error", err)
		return d.again(failed(r, faultOurs), c, 0)
	}
	begun := time.Now() // only to measure the duration
	a := d.post.post(ctx, c.Webhook.URL, header, body)
	took := time.Since(begun).Milliseconds()
	crashpoint.Reach(crashpoint.WebhookPost)
	if a.status == 0 && ctx.Err() != nil {
		return untried(r)
	}
	r.DurationMs, r.Counts = &took, c.EventType != store.EventWebhookTest
	if d.cfg.OnAttempt != nil {
		d.cfg.OnAttempt(AttemptReport{Event: *c.Event, Status: a.status, Taken: a.ok(), Began: begun, Lag: d.cfg.Now().Sub(c.Event.CreatedAt.Time)})
	}
	return d.settle(r, c, a)
}

// settle converts a response, or the lack of one, to a delivery result.
func (d *Dispatcher) settle(r store.DeliveryResult, c store.ClaimedDelivery, a response) store.DeliveryResult {
	if a.status == 0 {
		return d.again(failed(r, a.fault), c, 0)
	}
	r.StatusCode, r.Body = &a.status, &a.body
	if a.ok() {
		r.Status = store.DeliverySucceeded
		return r
	}
	r = failed(r, "the endpoint returned "+strconv.Itoa(a.status))
	if a.status == http.StatusGone {
		r.Gone = reasonGone
		return r
	}
	return d.again(r, c, a.retryAfter)
}

// compose returns the body of an event and the prefix of the names of the signature's
// header fields. It acquires the size of the body in d.held.
func (d *Dispatcher) compose(ctx context.Context, w store.Webhook, e store.Event) (body []byte, prefix string, err error) {
	if err := d.composing.Acquire(ctx, 1); err != nil {
		return nil, "", err
	}
	defer d.composing.Release(1)
	prefix = "Webhook"
	if body, err = d.cfg.Body(ctx, e); err == nil && w.Format != nil && d.cfg.Shape != nil {
		body, prefix, err = d.cfg.Shape(*w.Format, body)
	}
	if err != nil {
		return nil, "", err
	}
	return body, prefix, d.held.Acquire(ctx, weight(body))
}

func weight(body []byte) int64 { return min(int64(len(body)), maxHeld) }

// sign returns the header of a request, signed with the current time.
func (d *Dispatcher) sign(w store.Webhook, e store.Event, prefix string, body []byte) (http.Header, error) {
	now := d.cfg.Now()
	keys, err := d.cfg.Store.WebhookKeys(w, now)
	if err != nil {
		return nil, err
	}
	h := http.Header{
		prefix + "-Id":        {e.ID},
		prefix + "-Timestamp": {timestamp(now)},
		prefix + "-Signature": {sign(keys, e.ID, now, body)},
	}
	own, err := d.cfg.Store.WebhookHeaders(w)
	for name, value := range own {
		h.Set(name, value)
	}
	return h, err
}

func failed(r store.DeliveryResult, why string) store.DeliveryResult {
	r.Status, r.Error = store.DeliveryFailed, &why
	return r
}

func untried(r store.DeliveryResult) store.DeliveryResult {
	r.Untried, r.Counts = true, false
	return r
}

// again schedules the next attempt of a failed delivery, if one is left. Tests
// are not retried: the caller gets their result.
func (d *Dispatcher) again(r store.DeliveryResult, c store.ClaimedDelivery, asked time.Duration) store.DeliveryResult {
	if c.EventType == store.EventWebhookTest {
		return r
	}
	if next, ok := nextAttempt(c.Attempts, d.cfg.Now(), asked, d.cfg.Jitter()); ok {
		at := store.NewTime(next)
		r.Status, r.Next = store.DeliveryPending, &at
	}
	return r
}

// record stores the result of an attempt. It retries until the lease ends,
// because an unrecorded delivery is attempted again.
func (d *Dispatcher) record(ctx context.Context, c store.ClaimedDelivery, r store.DeliveryResult) {
	log := d.cfg.Log.With("delivery_id", c.ID, "event_id", c.EventID, "attempt", c.Attempts)
	if r.Error != nil && !r.Untried {
		log.InfoContext(ctx, "webhook delivery failed", "status", string(r.Status), "error", *r.Error)
	}
	leased, cancel := context.WithTimeout(ctx, d.cfg.Lease)
	defer cancel()
	err := store.Persist(leased, func(ctx context.Context) error { return d.cfg.Store.RecordDelivery(ctx, r) })
	switch {
	case err == nil:
	case errors.Is(err, store.ErrState):
		log.InfoContext(ctx, "webhook delivery was taken over or deleted")
	default:
		log.WarnContext(ctx, "cannot record a webhook delivery", "error", err)
	}
}
