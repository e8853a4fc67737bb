package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/store"
)

var errWebhookDisabled = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeWebhookDisabled, Message: "this webhook endpoint is disabled"}

// WebhookTargets checks webhook URLs.
type WebhookTargets interface {
	// Check returns an error if webhooks may not be sent to the URL. Its text
	// continues a sentence that starts with the field name.
	Check(ctx context.Context, url string) error
}

// WebhookTester sends test events.
type WebhookTester interface {
	// Test sends a test event to the endpoint and returns the result, which is
	// recorded as a delivery.
	Test(ctx context.Context, w store.Webhook) (store.DeliveryResult, error)
}

// webhookOf returns the endpoint. For a key with inbox_ids, an endpoint that
// receives events of other inboxes does not exist.
func (a *API) webhookOf(ctx context.Context, id string) (store.Webhook, error) {
	k := httpapi.Caller(ctx)
	w, err := a.store.Webhook(ctx, k.AccountID, id)
	if err != nil {
		return w, err
	}
	if err := stillSeen(k, &w); err != nil {
		return store.Webhook{}, err
	}
	return w, nil
}

// CreateWebhook implements POST /v1/webhooks.
func (a *API) CreateWebhook(ctx context.Context, req *gen.WebhookCreate) (*gen.WebhookEndpointCreated, error) {
	if err := a.checkWebhookURL(ctx, string(req.URL)); err != nil {
		return nil, err
	}
	k := httpapi.Caller(ctx)
	w := store.Webhook{AccountID: k.AccountID, URL: string(req.URL), Events: eventTypes(req.Events), Active: req.Active.Or(true), OwnerKey: ownerOf(k), Format: httpapi.SpecialOf(ctx).WebhookFormat}
	var err error
	if w.NewHeaders, err = webhookHeaders(req.Headers); err != nil {
		return nil, err
	}
	if err := checkReads(k, w, "events"); err != nil {
		return nil, err
	}
	inboxIDs, _, err := a.webhookInboxes(ctx, req.InboxIds)
	if err != nil {
		return nil, err
	}
	if !req.InboxIds.Set {
		inboxIDs = httpapi.Visible(k)
	}
	w, secret, err := a.store.CreateWebhook(ctx, w, inboxIDs)
	if err != nil {
		return nil, revokedMeanwhile(err)
	}
	v := webhookToAPI(w)
	return &gen.WebhookEndpointCreated{
		Object: v.Object, ID: v.ID, URL: v.URL, Events: v.Events, InboxIds: v.InboxIds, Active: v.Active, Headers: v.Headers, DisabledReason: v.DisabledReason,
		CreatedAt: v.CreatedAt, Secret: secret,
	}, nil
}

// fixedHeaders are the header fields of webhook requests that we set, or that belong to the
// connection.
var fixedHeaders = regexp.MustCompile(`(?i)^(host|user-agent|date|expect|connection|keep-alive|te|trailer|upgrade|accept-encoding|forwarded|(content|webhook|svix|proxy|transfer|sec)-.*)$`)

// webhookHeaders reads the header fields of an endpoint. Null and an absent field are nil.
func webhookHeaders(field gen.OptNilWebhookHeaders) (map[string]string, error) {
	if !field.Set || field.Null {
		return nil, nil //nolint:nilnil // there are none
	}
	seen, out := map[string]bool{}, map[string]string{}
	for name, value := range field.Value {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case fixedHeaders.MatchString(name):
			return nil, httpapi.Invalid("headers."+name, "is set by the service")
		case seen[canonical]:
			return nil, httpapi.Invalid("headers."+name, "is there twice, in another case")
		}
		seen[canonical], out[name] = true, value
	}
	return out, nil
}

// checkReads refuses an endpoint that receives events whose content the key may not read.
// param is the field of the request that says so, or empty.
func checkReads(k store.Key, w store.Webhook, param string) error {
	for _, events := range []struct{ about, scope string }{{"message", "read"}, {"draft", "read"}, {"email", "emails:read"}, {"suppression", "emails:read"}, {"contact", "contacts:read"}} {
		received := w.Events == nil || slices.ContainsFunc(w.Events.V, func(t store.EventType) bool { return strings.HasPrefix(string(t), events.about+".") })
		if received && !httpapi.HasScope(k.Scopes.V, events.scope) {
			return withParam(httpapi.Forbidden(gen.ErrorCodeInsufficientScope,
				"an endpoint that receives "+events.about+" events also needs the scope "+events.scope), param)
		}
	}
	return nil
}

// webhookToChange is webhookOf for a call that changes the endpoint, or sends it past
// events.
func (a *API) webhookToChange(ctx context.Context, id string) (store.Webhook, error) {
	w, err := a.webhookOf(ctx, id)
	if err == nil {
		err = checkReads(httpapi.Caller(ctx), w, "")
	}
	return w, err
}

// webhookInboxes reads the inboxes of an endpoint. Both results are nil for null,
// which means all inboxes, and for an absent field.
func (a *API) webhookInboxes(ctx context.Context, field gen.OptNilWebhookInboxIds) ([]string, *store.JSON[[]store.InboxRef], error) {
	if !field.Set {
		return nil, nil, nil
	}
	k := httpapi.Caller(ctx)
	inboxes, given := field.Get()
	if !given {
		if httpapi.Visible(k) != nil {
			return nil, nil, httpapi.Forbidden(gen.ErrorCodeInsufficientScope, "this key has inbox_ids, so that it cannot have an endpoint of all inboxes")
		}
		return nil, nil, nil
	}
	for i, id := range inboxes {
		if _, err := a.inboxOf(ctx, id); errors.Is(err, store.ErrNotFound) {
			return nil, nil, httpapi.Invalid(fmt.Sprintf("inbox_ids[%d]", i), "%s",
				cmp.Or(ids.Typo(id), "inbox "+id+" not found, or this key has no access to it"))
		} else if err != nil {
			return nil, nil, err
		}
	}
	refs, err := a.store.InboxRefs(ctx, k.AccountID, inboxes)
	return inboxes, refs, err
}

// ownerOf returns the id of the key that owns what it creates, or nil for a
// person.
func ownerOf(k store.Key) *string {
	if k.Seq <= 0 {
		return nil
	}
	return &k.ID
}

func (a *API) checkWebhookURL(ctx context.Context, url string) error {
	if err := a.cfg.WebhookTargets.Check(ctx, url); err != nil {
		return httpapi.Invalid("url", "%s", err.Error())
	}
	return nil
}

// ListWebhooks implements GET /v1/webhooks.
func (a *API) ListWebhooks(ctx context.Context, p gen.ListWebhooksParams) (*gen.WebhookList, error) {
	k := httpapi.Caller(ctx)
	l, err := a.store.ListWebhooks(ctx, k.AccountID, httpapi.Visible(k), pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.WebhookList](l, err, webhookToAPI)
}

// GetWebhook implements GET /v1/webhooks/{webhook_id}.
func (a *API) GetWebhook(ctx context.Context, p gen.GetWebhookParams) (*gen.WebhookEndpoint, error) {
	w, err := a.webhookOf(ctx, p.WebhookID)
	return result(w, err, webhookToAPI)
}

// UpdateWebhook implements PATCH /v1/webhooks/{webhook_id}.
func (a *API) UpdateWebhook(ctx context.Context, req *gen.WebhookUpdate, p gen.UpdateWebhookParams) (*gen.WebhookEndpoint, error) {
	if _, err := a.webhookOf(ctx, p.WebhookID); err != nil {
		return nil, err
	}
	k := httpapi.Caller(ctx)
	to, given := req.URL.Get()
	if given {
		if err := a.checkWebhookURL(ctx, string(to)); err != nil {
			return nil, err
		}
	}
	headers, err := webhookHeaders(req.Headers)
	if err != nil {
		return nil, err
	}
	_, inboxes, err := a.webhookInboxes(ctx, req.InboxIds)
	if err != nil {
		return nil, err
	}
	w, err := a.store.UpdateWebhook(ctx, k.AccountID, p.WebhookID, ownerOf(k), func(w *store.Webhook) error {
		if err := cmp.Or(stillSeen(k, w), checkReads(k, *w, "")); err != nil {
			return err
		}
		wasActive, adminOwned := w.Active, ownedByAdmin(w)
		if given && w.URL != string(to) {
			if adminOwned && !isAdmin(k) {
				return errNeedsAdmin("url", "url: a person or a key with the scope admin owns this endpoint, so that changing its URL needs the scope admin")
			}
			if originOf(w.URL) != originOf(string(to)) { // which must not learn the values
				w.Headers = nil
			}
			w.URL, w.URLBy = string(to), ownerOf(k)
		}
		if req.Headers.Set {
			w.Headers, w.NewHeaders = nil, headers
		}
		if req.Events.IsSet() {
			w.Events = eventTypes(req.Events)
			if err := checkReads(k, *w, "events"); err != nil {
				return err
			}
		}
		if req.InboxIds.Set {
			w.Inboxes = inboxes
		}
		patch(&w.Active, req.Active)
		switch {
		case isAdmin(k): // it stays when the key that created it is revoked
			w.OwnerKey, w.URLBy, w.SecretBy = nil, nil, nil
		case w.Active && !wasActive && !adminOwned: // its former key may be revoked
			w.OwnerKey = ownerOf(k)
		}
		return nil
	})
	return result(w, revokedMeanwhile(err), webhookToAPI)
}

// originOf returns the scheme and the host of a URL.
func originOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	return u.Scheme + "://" + u.Host
}

// isAdmin reports whether the caller has the scope admin.
func isAdmin(k store.Key) bool { return httpapi.HasScope(k.Scopes.V, "admin") }

// ownedByAdmin reports whether an endpoint that is being edited belongs to a person or to
// an admin key that is not revoked.
func ownedByAdmin(w *store.Webhook) bool {
	return w.OwnerKey == nil || w.Owner != nil && isAdmin(*w.Owner)
}

// stillSeen returns an error if the key no longer sees the endpoint that it is to edit.
func stillSeen(k store.Key, w *store.Webhook) error {
	if !w.SeenBy(httpapi.Visible(k)) {
		return fmt.Errorf("webhook endpoint: %w", store.ErrNotFound)
	}
	return nil
}

// DeleteWebhook implements DELETE /v1/webhooks/{webhook_id}.
func (a *API) DeleteWebhook(ctx context.Context, p gen.DeleteWebhookParams) (*gen.DeletedWebhook, error) {
	if _, err := a.webhookOf(ctx, p.WebhookID); err != nil {
		return nil, err
	}
	if err := a.store.DeleteWebhook(ctx, httpapi.Caller(ctx).AccountID, p.WebhookID); err != nil {
		return nil, err
	}
	return &gen.DeletedWebhook{Object: "webhook_endpoint", ID: p.WebhookID, Deleted: true}, nil
}

// RotateWebhookSecret implements POST /v1/webhooks/{webhook_id}/rotate-secret.
func (a *API) RotateWebhookSecret(ctx context.Context, p gen.RotateWebhookSecretParams) (*gen.WebhookEndpointRotated, error) {
	k := httpapi.Caller(ctx)
	w, secret, err := a.store.RotateWebhook(ctx, k.AccountID, p.WebhookID, ownerOf(k), func(w *store.Webhook) error {
		if err := cmp.Or(stillSeen(k, w), checkReads(k, *w, "")); err != nil {
			return err
		}
		switch {
		case isAdmin(k): // it stays when the key that created it is revoked
			w.OwnerKey, w.URLBy, w.SecretBy = nil, nil, nil
		case ownedByAdmin(w):
			return httpapi.Forbidden(gen.ErrorCodeInsufficientScope,
				"a person or a key with the scope admin owns this endpoint, so that rotating its secret needs the scope admin")
		}
		return nil
	})
	if err != nil {
		return nil, revokedMeanwhile(err)
	}
	v := webhookToAPI(w)
	return &gen.WebhookEndpointRotated{
		Object: v.Object, ID: v.ID, URL: v.URL, Events: v.Events, InboxIds: v.InboxIds, Active: v.Active, Headers: v.Headers, DisabledReason: v.DisabledReason,
		CreatedAt: v.CreatedAt, Secret: secret, PreviousSecretExpiresAt: w.OldUntil.Time,
	}, nil
}

// TestWebhook implements POST /v1/webhooks/{webhook_id}/test.
func (a *API) TestWebhook(ctx context.Context, p gen.TestWebhookParams) (*gen.WebhookTestResult, error) {
	w, err := a.webhookOf(ctx, p.WebhookID)
	if err != nil {
		return nil, err
	}
	r, err := a.cfg.WebhookTester.Test(ctx, w)
	if err != nil {
		return nil, err
	}
	out := &gen.WebhookTestResult{Success: r.Status == store.DeliverySucceeded}
	if r.DurationMs != nil {
		out.ResponseTimeMs = *r.DurationMs
	}
	switch {
	case r.StatusCode != nil:
		out.StatusCode = *r.StatusCode
	case r.Error != nil:
		out.Error = gen.NewOptString(*r.Error)
	}
	return out, nil
}

// ListWebhookDeliveries implements GET /v1/webhooks/{webhook_id}/deliveries.
func (a *API) ListWebhookDeliveries(ctx context.Context, p gen.ListWebhookDeliveriesParams) (*gen.WebhookDeliveryList, error) {
	w, err := a.webhookOf(ctx, p.WebhookID)
	if err != nil {
		return nil, err
	}
	f := store.DeliveryFilter{Status: store.DeliveryStatus(p.Status.Or("")), EventType: store.EventType(p.EventType.Or(""))}
	l, err := a.store.ListDeliveries(ctx, w, f, pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.WebhookDeliveryList](l, err, func(d store.Delivery) *gen.WebhookDelivery { return deliveryToAPI(w, d) })
}

// RetryWebhookDelivery implements POST
// /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry.
func (a *API) RetryWebhookDelivery(ctx context.Context, p gen.RetryWebhookDeliveryParams) (*gen.WebhookDelivery, error) {
	w, err := a.webhookToChange(ctx, p.WebhookID)
	if err != nil {
		return nil, err
	}
	d, err := a.store.RetryDelivery(ctx, w, p.DeliveryID)
	if errors.Is(err, store.ErrState) {
		return nil, errWebhookDisabled
	}
	if err != nil {
		return nil, err
	}
	return deliveryToAPI(w, d), nil
}

// ReplayWebhook implements POST /v1/webhooks/{webhook_id}/replay.
func (a *API) ReplayWebhook(ctx context.Context, req *gen.WebhookReplay, p gen.ReplayWebhookParams) (*gen.WebhookReplayed, error) {
	w, err := a.webhookToChange(ctx, p.WebhookID)
	if err != nil {
		return nil, err
	}
	var types []store.EventType
	if named := eventTypes(req.Types); named != nil {
		types = named.V
	}
	r, err := a.store.ReplayDeliveries(ctx, w, req.Since, types)
	if errors.Is(err, store.ErrState) {
		return nil, errWebhookDisabled
	}
	if err != nil {
		return nil, err
	}
	return &gen.WebhookReplayed{Object: "webhook_replay", WebhookID: w.ID, Queued: r.Queued, HasMore: r.More, Until: r.Until.Time}, nil
}

// eventTypes returns nil for null and for an absent field. Nil means all event
// types, including future ones.
func eventTypes(events gen.OptNilWebhookEvents) *store.JSON[[]store.EventType] {
	named, ok := events.Get()
	if !ok {
		return nil
	}
	types := make([]store.EventType, len(named))
	for i, t := range named {
		types[i] = store.EventType(t)
	}
	return &store.JSON[[]store.EventType]{V: types}
}

func webhookToAPI(w store.Webhook) *gen.WebhookEndpoint {
	out := &gen.WebhookEndpoint{
		Object: "webhook_endpoint", ID: w.ID, URL: w.URL, Active: w.Active,
		DisabledReason: nilString(w.DisabledReason), CreatedAt: w.CreatedAt.Time, Headers: gen.WebhookHeadersResponse{},
	}
	if w.Headers != nil {
		for name := range w.Headers.V {
			out.Headers[name] = "***"
		}
	}
	if w.Inboxes != nil {
		out.InboxIds = make([]string, len(w.Inboxes.V))
		for i, in := range w.Inboxes.V {
			out.InboxIds[i] = in.ID
		}
	}
	if w.Events == nil { // null: all of them
		return out
	}
	out.Events = make([]string, len(w.Events.V))
	for i, t := range w.Events.V {
		out.Events[i] = string(t)
	}
	return out
}

func deliveryToAPI(w store.Webhook, d store.Delivery) *gen.WebhookDelivery {
	out := &gen.WebhookDelivery{
		Object: "webhook_delivery", ID: d.ID, WebhookID: w.ID, EventID: d.EventID, EventType: string(d.EventType), Status: string(d.Status),
		Attempts: d.Attempts, LastStatusCode: gen.NilInt{Null: true}, LastError: nilString(d.LastError),
		LastResponseBody: nilString(d.LastBody), LastDurationMs: nilInt(d.LastDurationMs), NextAttemptAt: gen.NilDateTime{Null: true},
		CreatedAt: d.CreatedAt.Time, UpdatedAt: d.UpdatedAt.Time,
	}
	if d.LastStatusCode != nil {
		out.LastStatusCode = gen.NewNilInt(*d.LastStatusCode)
	}
	if w.Active { // a disabled endpoint receives nothing
		out.NextAttemptAt = nilTime(d.NextAttemptAt)
	}
	return out
}
