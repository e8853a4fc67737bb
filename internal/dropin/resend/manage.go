package resend

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Domains.

type newDomain struct {
	Name string `json:"name"`
}

func (s server) createDomain(r *http.Request, in *newDomain) (any, error) {
	d, err := vendorapi.Call[gen.Domain](r, s.API, http.MethodPost, "/v1/domains", nil, object{"domain": in.Name})
	return created(showWholeDomain(&d)), vendorapi.Renamed(err, "domain", "name")
}

func showDomain(d *gen.Domain) object {
	return object{
		"id": d.ID, "name": d.Domain, "status": d.Status, "created_at": d.CreatedAt, "region": "",
		"capabilities": object{"sending": "enabled", "receiving": "enabled"},
	}
}

func showWholeDomain(d *gen.Domain) object {
	out := showDomain(d)
	out["object"], out["records"] = "domain", vendorapi.Mapped(d.DNSRecords, showRecord)
	return out
}

func showRecord(r gen.DnsRecord) object {
	out := object{"record": r.Record, "name": r.Name, "type": r.Type, "value": r.Value, "ttl": strconv.Itoa(r.TTL), "status": r.Status}
	if r.Record == "MX" {
		out["record"] = "Receiving"
	}
	if r.Status == "missing" {
		out["status"] = "failed"
	}
	if priority, ok := r.Priority.Get(); ok {
		out["priority"] = priority
	}
	return out
}

// Templates. All are published as they are created or changed.

type template struct {
	Name      *string `json:"name"`
	Subject   *string `json:"subject"`
	HTML      *string `json:"html"`
	Text      *string `json:"text"`
	Variables []struct {
		Key      string           `json:"key"`
		Type     string           `json:"type"`
		Fallback *json.RawMessage `json:"fallback_value"`
	} `json:"variables"`
}

// ours converts a template to the fields of our API. The variables are those in the
// content; a list of them is only checked.
func (t *template) ours(patch bool) (object, error) {
	for i, v := range t.Variables {
		if v.Fallback != nil {
			return nil, vendorapi.Unsupported("variables[" + strconv.Itoa(i) + "].fallback_value")
		}
	}
	out := object{}
	for name, value := range map[string]*string{"name": t.Name, "subject": t.Subject, "html": t.HTML, "text": t.Text} {
		switch {
		case value == nil:
		case *value != "":
			out[name] = *value
		case patch:
			return nil, vendorapi.Unsupported(name)
		}
	}
	return out, nil
}

func (s server) createTemplate(r *http.Request, in *template) (any, error) {
	out, err := in.ours(false)
	if err != nil {
		return nil, err
	}
	t, err := vendorapi.Call[gen.Template](r, s.API, http.MethodPost, "/v1/templates", nil, out)
	return created{"object": "template", "id": t.ID}, err
}

func (s server) updateTemplate(r *http.Request, in *template) (any, error) {
	out, err := in.ours(true)
	if err != nil {
		return nil, err
	}
	return s.patch(r, "template", "templates", out)
}

func showTemplate(t *gen.Template) object {
	return object{
		"object": "template", "id": t.ID, "name": t.Name, "alias": t.Name, "status": "published", "published_at": t.UpdatedAt,
		"created_at": t.CreatedAt, "updated_at": t.UpdatedAt, "subject": t.Subject, "html": t.HTML.Value, "text": t.Text, "from": nil, "reply_to": nil,
		"variables": nil, "has_unpublished_versions": false, "current_version_id": t.ID,
	}
}

// Webhooks.

// events are our events, by Resend's. Its email.sent says that the email was accepted for
// sending.
var events = map[string]string{
	"email.sent": "email.queued", "email.scheduled": "email.scheduled", "email.delivered": "email.delivered", "email.delivery_delayed": "email.delivery_delayed",
	"email.complained": "email.complained", "email.bounced": "email.bounced", "email.opened": "email.opened", "email.clicked": "email.clicked",
	"email.received": "message.received", "email.failed": "email.failed", "email.suppressed": "email.suppressed",
	"suppression.added": "suppression.created", "suppression.removed": "suppression.deleted",
}

// theirs are Resend's events, by ours.
var theirs = func() map[string]string {
	all := map[string]string{}
	for name, our := range events {
		all[our] = name
	}
	return all
}()

type webhook struct {
	Endpoint string   `json:"endpoint"`
	Events   []string `json:"events"`
	Status   string   `json:"status"`
}

func (h *webhook) ours() (object, error) {
	out := object{}
	if h.Endpoint != "" {
		out["url"] = h.Endpoint
	}
	if h.Events != nil {
		types := make([]string, len(h.Events))
		for i, name := range h.Events {
			if types[i] = events[name]; types[i] == "" {
				return nil, httpapi.Invalid("events", "names %[1]s: Postroom has no event %[1]s", name)
			}
		}
		out["events"] = types
	}
	switch h.Status {
	case "":
	case "enabled", "disabled":
		out["active"] = h.Status == "enabled"
	default:
		return nil, httpapi.Invalid("status", "must be enabled or disabled")
	}
	return out, nil
}

func (s server) createWebhook(r *http.Request, in *webhook) (any, error) {
	if len(in.Events) == 0 {
		return nil, httpapi.Invalid("events", "is required")
	}
	out, err := in.ours()
	if err != nil {
		return nil, err
	}
	r = r.WithContext(httpapi.WithSpecial(r.Context(), func(s *httpapi.Special) { s.WebhookFormat = new(name) }))
	h, err := vendorapi.Call[gen.WebhookEndpointCreated](r, s.API, http.MethodPost, "/v1/webhooks", nil, out)
	return created{"object": "webhook", "id": h.ID, "signing_secret": h.Secret}, vendorapi.Renamed(err, "url", "endpoint")
}

// showWebhook shows an endpoint. Its secret is shown only when it is made.
func showWebhook(h *gen.WebhookEndpoint) object {
	out := object{"object": "webhook", "id": h.ID, "endpoint": h.URL, "status": "disabled", "created_at": h.CreatedAt, "events": nil}
	if h.Active {
		out["status"] = "enabled"
	}
	if h.Events != nil {
		out["events"] = vendorapi.Mapped(h.Events, func(our string) string { return cmp.Or(theirs[our], our) })
	}
	return out
}

func (s server) updateWebhook(r *http.Request, in *webhook) (any, error) {
	out, err := in.ours()
	if err != nil {
		return nil, err
	}
	return s.patch(r, "webhook", "webhooks", out)
}

func (s server) rotateSecret(_ http.ResponseWriter, r *http.Request) (any, error) {
	path := vendorapi.Path(r, "webhooks", "{id}", "rotate-secret")
	h, err := vendorapi.Call[gen.WebhookEndpointRotated](r, s.API, http.MethodPost, path, nil, nil)
	return object{"object": "webhook", "id": h.ID, "signing_secret": h.Secret}, err
}

// event converts one of our events, and returns the prefix of the header fields of its
// signature.
func event(body []byte) (shaped []byte, prefix string, err error) {
	var in struct {
		Type      string          `json:"type"`
		CreatedAt string          `json:"created_at"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, "", err
	}
	name, data := theirs[in.Type], object{}
	switch {
	case name == "": // a test event, which Resend does not have
		name = in.Type
	case in.Type == "message.received":
		var m gen.Message
		if err := m.UnmarshalJSON(in.Data); err != nil {
			return nil, "", err
		}
		data = showReceived(&m)
		data["email_id"] = m.ID
		delete(data, "id")
	default:
		if err := json.Unmarshal(in.Data, &data); err != nil {
			return nil, "", err
		}
		data = eventData(in.Type, data)
	}
	shaped, err = json.Marshal(object{"type": name, "created_at": in.CreatedAt, "data": data})
	return shaped, "Svix", err
}

// eventData converts the data of an event about an email or a suppression.
func eventData(typ string, d object) object {
	if d["object"] == "suppression" {
		origin := map[any]string{"hard_bounce": "bounce", "complaint": "complaint"}[d["reason"]]
		return object{
			"id": d["id"], "email": d["email"], "origin": cmp.Or(origin, "manual"), "source_id": d["source"], "created_at": d["created_at"],
		}
	}
	out := object{
		"email_id": d["id"], "message_id": d["rfc_message_id"], "from": d["from"], "to": d["to"], "subject": d["subject"],
		"created_at": d["created_at"], "tags": d["tags"],
	}
	if d["recipient"] != nil { // the event is about this one
		out["to"] = []any{d["recipient"]}
	}
	switch typ {
	case "email.bounced":
		kind := "Permanent"
		if d["bounce_type"] == "soft" {
			kind = "Transient"
		}
		bounce, _ := d["bounce"].(object)
		sub, _ := bounce["sub_type"].(string)
		said, _ := bounce["diagnostic"].(string)
		out["bounce"] = object{"type": kind, "subType": cmp.Or(sub, "General"), "message": said}
	case "email.clicked":
		out["click"] = object{"link": d["link"], "timestamp": d["created_at"], "ipAddress": "", "userAgent": ""}
	case "email.failed":
		recipients, _ := d["recipients"].([]any)
		for _, r := range recipients {
			if r, _ := r.(object); r["email"] == d["recipient"] {
				out["failed"] = object{"reason": r["last_response"]}
			}
		}
	case "email.suppressed":
		out["suppressed"] = object{"type": "OnAccountSuppressionList", "message": "The address is on the suppression list."}
	}
	return out
}
