package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// webhookList is the page of webhooks, with the form for a new one.
type webhookList struct {
	list[webhookRow]
	Events []eventGroup
}

// webhookRow is a webhook with how its deliveries went.
type webhookRow struct {
	gen.WebhookEndpoint
	webhookHealth
}

// webhookHealth is how the deliveries of a webhook went.
type webhookHealth struct {
	Rate         store.DeliveryRate // of the last 24 hours
	FailingSince *store.Time        // the first failed attempt after the last success
}

// Attempted returns the number of deliveries that were attempted.
func (h webhookHealth) Attempted() int { return h.Rate.Succeeded + h.Rate.Failed }

// Percent returns the share of the deliveries that succeeded, rounded down, so that
// 100 means all.
func (h webhookHealth) Percent() int { return h.Rate.Succeeded * 100 / max(1, h.Attempted()) }

// Tone returns the colour class of the share.
func (h webhookHealth) Tone() string {
	switch {
	case h.Percent() >= 99:
		return "good"
	case h.Percent() >= 90:
		return "warn"
	}
	return "bad"
}

func (d *Dashboard) webhookHealth(p *page, id string) (webhookHealth, error) {
	w, err := d.store.Webhook(p.ctx(), p.user.AccountID, id)
	if err != nil {
		return webhookHealth{}, err
	}
	rate, err := d.store.DeliveryRate(p.ctx(), p.user.AccountID, id, d.now().Add(-24*time.Hour))
	return webhookHealth{rate, w.FailingSince}, err
}

// eventGroup is the group of events about one kind of object.
type eventGroup struct {
	Name   string
	Events []string
}

// eventGroups returns all events that a webhook can subscribe to.
func eventGroups() []eventGroup {
	var groups []eventGroup
	for _, e := range gen.EventType("").AllValues() {
		name, _, _ := strings.Cut(string(e), ".")
		i := slices.IndexFunc(groups, func(g eventGroup) bool { return g.Name == name })
		if i < 0 {
			groups = append(groups, eventGroup{Name: name})
			i = len(groups) - 1
		}
		groups[i].Events = append(groups[i].Events, string(e))
	}
	return groups
}

func (d *Dashboard) listWebhooks(p *page) error {
	l, err := d.api.ListWebhooks(p.ctx(), gen.ListWebhooksParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v := webhookList{list[webhookRow]{paging: p.paging(l.Cursor), Form: p.formOf(nil)}, eventGroups()}
	for _, w := range l.Data {
		h, err := d.webhookHealth(p, w.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted in the meantime
		}
		if err != nil {
			return err
		}
		v.Rows = append(v.Rows, webhookRow{w, h})
	}
	return p.show("webhooks", v)
}

func (d *Dashboard) createWebhook(p *page) error {
	req := &gen.WebhookCreate{URL: gen.WebhookUrl(p.field("url")), Events: p.chosenEvents()}
	if ids := listOf(p.form.Get("inbox_ids")); len(ids) > 0 {
		req.InboxIds.SetTo(ids)
	}
	made, err := d.api.CreateWebhook(p.ctx(), req)
	if err != nil {
		return p.again(err, d.listWebhooks)
	}
	return p.leaveSecret(webhookPath(made.ID)+"/secret", nil, made.Secret)
}

// chosenEvents returns the selected event types; null, which means all, if there are
// none.
func (p *page) chosenEvents() (events gen.OptNilWebhookEvents) {
	events.SetToNull()
	if chosen := p.form["events"]; len(chosen) > 0 {
		types := make(gen.WebhookEvents, len(chosen))
		for i, e := range chosen {
			types[i] = gen.EventType(e)
		}
		events.SetTo(types)
	}
	return events
}

// showWebhookSecret shows the signing secret of a new webhook, or the new one of a webhook.
func (d *Dashboard) showWebhookSecret(p *page) error {
	return p.showOnce(secret{
		Title: "Signing secret", What: "Signing secret", Back: webhookPath(p.id()), BackTitle: "Back to the webhook",
		Use: "Your program uses it to verify that a delivery comes from here. It is shown once. You can replace it later: for 24 hours, deliveries are signed with the previous secret, too.",
	})
}

// webhookPage is the page of one webhook with its deliveries.
type webhookPage struct {
	*gen.WebhookEndpoint
	webhookHealth
	All          bool     // it receives all events
	Chosen       []string // event types; nil: all
	Status, Type string
	Types        []eventGroup
	Statuses     []statusChip
	Deliveries   []gen.WebhookDelivery
	paging
}

func (d *Dashboard) showWebhook(p *page) error {
	id := p.id()
	w, err := d.api.GetWebhook(p.ctx(), gen.GetWebhookParams{WebhookID: id})
	if err != nil {
		return err
	}
	q := p.r.URL.Query()
	v := webhookPage{WebhookEndpoint: w, All: w.Events == nil, Status: q.Get("status"), Type: q.Get("type"), Types: eventGroups()}
	for _, e := range w.Events {
		v.Chosen = append(v.Chosen, string(e))
	}
	if v.webhookHealth, err = d.webhookHealth(p, id); err != nil {
		return err
	}
	params := gen.ListWebhookDeliveriesParams{WebhookID: id, Limit: limit(), Cursor: p.cursor()}
	if v.Status != "" {
		params.Status = gen.NewOptWebhookDeliveryStatus(gen.WebhookDeliveryStatus(v.Status))
	}
	if v.Type != "" {
		params.EventType = gen.NewOptEventType(gen.EventType(v.Type))
	}
	q.Del("cursor")
	for _, status := range []string{"", "failed", "pending", "succeeded"} {
		q.Set("status", status)
		v.Statuses = append(v.Statuses, statusChip{Status: status, Path: webhookPath(id) + "?" + q.Encode()})
	}
	l, err := d.api.ListWebhookDeliveries(p.ctx(), params)
	if err != nil {
		return err
	}
	v.Deliveries, v.paging = l.Data, p.paging(l.Cursor)
	return p.show("webhook", v)
}

func webhookPath(id string) string { return "/webhooks/" + url.PathEscape(id) }

func (d *Dashboard) testWebhook(p *page) error {
	id := p.id()
	res, err := d.api.TestWebhook(p.ctx(), gen.TestWebhookParams{WebhookID: id})
	if err != nil {
		return p.refused(webhookPath(id), err)
	}
	if res.Success {
		return p.done(webhookPath(id), fmt.Sprintf("The endpoint returned %d after %d ms.", res.StatusCode, res.ResponseTimeMs))
	}
	text := fmt.Sprintf("The endpoint returned %d, which is not 2xx.", res.StatusCode)
	if res.StatusCode == 0 {
		text = "No response: " + res.Error.Value
	}
	return p.failed(webhookPath(id), text)
}

func (d *Dashboard) switchWebhook(p *page) error {
	on, text := p.form.Get("active") == "true", "Webhook turned off. Nothing is sent to it."
	if on {
		text = "Webhook turned on."
	}
	return d.changeWebhook(p, &gen.WebhookUpdate{Active: gen.NewOptBool(on)}, text)
}

func (d *Dashboard) editWebhook(p *page) error {
	req := &gen.WebhookUpdate{URL: gen.NewOptWebhookUrl(gen.WebhookUrl(p.field("url"))), Events: p.chosenEvents()}
	req.InboxIds.SetToNull()
	if ids := listOf(p.form.Get("inbox_ids")); len(ids) > 0 {
		req.InboxIds.SetTo(ids)
	}
	return d.changeWebhook(p, req, "Webhook saved.")
}

func (d *Dashboard) changeWebhook(p *page, req *gen.WebhookUpdate, done string) error {
	id := p.id()
	_, err := d.api.UpdateWebhook(p.ctx(), req, gen.UpdateWebhookParams{WebhookID: id})
	return p.result(err, webhookPath(id), webhookPath(id), done)
}

// replayWebhook sends the events of the last hours again.
func (d *Dashboard) replayWebhook(p *page) error {
	id := p.id()
	hours, err := strconv.Atoi(p.form.Get("hours"))
	if err != nil || hours < 1 || hours > 720 {
		return p.failed(webhookPath(id), "Enter a number of hours from 1 to 720.")
	}
	req := &gen.WebhookReplay{Since: time.Now().Add(-time.Duration(hours) * time.Hour)}
	res, err := d.api.ReplayWebhook(p.ctx(), req, gen.ReplayWebhookParams{WebhookID: id})
	if err != nil {
		return p.refused(webhookPath(id), err)
	}
	text := fmt.Sprintf("%d events are queued again.", res.Queued)
	if res.HasMore {
		text += " There are more: replay a shorter time for the newest."
	}
	return p.done(webhookPath(id), text)
}

func (d *Dashboard) rotateWebhook(p *page) error {
	id := p.id()
	w, err := d.api.RotateWebhookSecret(p.ctx(), gen.RotateWebhookSecretParams{WebhookID: id})
	if err != nil {
		return p.refused(webhookPath(id), err)
	}
	return p.leaveSecret(webhookPath(id)+"/secret", nil, w.Secret)
}

func (d *Dashboard) deleteWebhook(p *page) error {
	id := p.id()
	_, err := d.api.DeleteWebhook(p.ctx(), gen.DeleteWebhookParams{WebhookID: id})
	return p.result(err, webhookPath(id), "/webhooks", "Webhook deleted.")
}

// retryFailed retries the newest failed deliveries.
func (d *Dashboard) retryFailed(p *page) error {
	l, err := d.api.ListWebhookDeliveries(p.ctx(), gen.ListWebhookDeliveriesParams{
		WebhookID: p.id(), Limit: gen.NewOptInt(100), Status: gen.NewOptWebhookDeliveryStatus(gen.WebhookDeliveryStatusFailed),
	})
	if err != nil {
		return p.refused(webhookPath(p.id()), err)
	}
	for _, f := range l.Data {
		if _, err := d.api.RetryWebhookDelivery(p.ctx(), gen.RetryWebhookDeliveryParams{WebhookID: p.id(), DeliveryID: f.ID}); err != nil {
			return p.refused(webhookPath(p.id()), err)
		}
	}
	text := plural(len(l.Data), "failed delivery is queued for retry.", "failed deliveries are queued for retry.")
	if l.HasMore {
		text += " There are more: retry again for the next ones."
	}
	return p.done(webhookPath(p.id()), text)
}

// deliveryPage is the page of one delivery.
type deliveryPage struct {
	store.Delivery
	WebhookID, URL string
	// Payload is the request body; Gone reports that what it was about is deleted.
	Payload   string
	Gone, Cut bool
}

// showDelivery shows what the endpoint was sent and how it responded.
func (d *Dashboard) showDelivery(p *page) error {
	w, err := d.api.GetWebhook(p.ctx(), gen.GetWebhookParams{WebhookID: p.id()})
	if err != nil {
		return err
	}
	kept, err := d.store.Webhook(p.ctx(), p.user.AccountID, w.ID)
	if err != nil {
		return err
	}
	of, e, err := d.store.Delivery(p.ctx(), p.user.AccountID, p.r.PathValue("delivery"))
	if err != nil {
		return err
	}
	if of.EndpointSeq != kept.Seq {
		return errNoPage
	}
	v := deliveryPage{Delivery: of, WebhookID: w.ID, URL: w.URL, Gone: e == nil}
	if e != nil {
		body, err := d.cfg.EventBody(p.ctx(), *e)
		switch {
		case errors.Is(err, store.ErrNotFound):
			v.Gone = true
		case err != nil:
			return err
		}
		var indented bytes.Buffer
		if json.Indent(&indented, body, "", "  ") == nil {
			body = indented.Bytes()
		}
		v.Payload, v.Cut = cutSource(string(body))
	}
	return p.show("delivery", v)
}

func (d *Dashboard) retryDelivery(p *page) error {
	id := p.id()
	_, err := d.api.RetryWebhookDelivery(p.ctx(), gen.RetryWebhookDeliveryParams{WebhookID: id, DeliveryID: p.r.PathValue("delivery")})
	return p.result(err, webhookPath(id), webhookPath(id), "The delivery is queued for retry.")
}
