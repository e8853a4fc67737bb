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

func (s server) createDomain(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name             string      `json:"name"`
		Region           unsupported `json:"region"`
		CustomReturnPath unsupported `json:"custom_return_path"`
		Capabilities     unsupported `json:"capabilities"`
		OpenTracking     unsupported `json:"open_tracking"`
		ClickTracking    unsupported `json:"click_tracking"`
		TLS              unsupported `json:"tls"`
		Subdomain        unsupported `json:"tracking_subdomain"`
	}
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	err := unsupportedAmong("region", in.Region, "custom_return_path", in.CustomReturnPath, "capabilities", in.Capabilities,
		"open_tracking", in.OpenTracking, "click_tracking", in.ClickTracking, "tls", in.TLS, "tracking_subdomain", in.Subdomain)
	if err != nil {
		return err
	}
	d, err := vendorapi.Call[gen.Domain](r, s.API, http.MethodPost, "/v1/domains", nil, object{"domain": in.Name})
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusCreated, showWholeDomain(&d))
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
	Name      *string     `json:"name"`
	Subject   *string     `json:"subject"`
	HTML      *string     `json:"html"`
	Text      *string     `json:"text"`
	Alias     unsupported `json:"alias"`
	From      unsupported `json:"from"`
	ReplyTo   unsupported `json:"reply_to"`
	Variables []struct {
		Key      string      `json:"key"`
		Type     string      `json:"type"`
		Fallback unsupported `json:"fallback_value"`
	} `json:"variables"`
}

// ours converts a template to the fields of our API. The variables are those in the
// content; a list of them is only checked.
func (t *template) ours(patch bool) (object, error) {
	if err := unsupportedAmong("alias", t.Alias, "from", t.From, "reply_to", t.ReplyTo); err != nil {
		return nil, err
	}
	for i, v := range t.Variables {
		if v.Fallback.given {
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

// putTemplate creates a template, or changes the one in the path.
func (s server) putTemplate(w http.ResponseWriter, r *http.Request) error {
	var in template
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	out, err := in.ours(r.Method == http.MethodPatch)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPatch {
		return s.patch(w, r, "template", "templates", out)
	}
	t, err := vendorapi.Call[gen.Template](r, s.API, http.MethodPost, "/v1/templates", nil, out)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusCreated, object{"object": "template", "id": t.ID})
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
				return nil, &httpapi.Error{
					Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeInvalidRequest, Param: "events", Message: "events: Postroom has no event " + name,
				}
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

func (s server) createWebhook(w http.ResponseWriter, r *http.Request) error {
	var in webhook
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	if in.Endpoint == "" {
		return required("endpoint")
	}
	if len(in.Events) == 0 {
		return required("events")
	}
	out, err := in.ours()
	if err != nil {
		return err
	}
	r = r.WithContext(httpapi.WithSpecial(r.Context(), func(s *httpapi.Special) { s.WebhookFormat = new(name) }))
	made, err := vendorapi.Call[gen.WebhookEndpointCreated](r, s.API, http.MethodPost, "/v1/webhooks", nil, out)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusCreated, object{"object": "webhook", "id": made.ID, "signing_secret": made.Secret})
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

func (s server) updateWebhook(w http.ResponseWriter, r *http.Request) error {
	var in webhook
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	out, err := in.ours()
	if err != nil {
		return err
	}
	return s.patch(w, r, "webhook", "webhooks", out)
}

func (s server) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	h, err := vendorapi.Call[gen.WebhookEndpointRotated](r, s.API, http.MethodPost, vendorapi.Path("webhooks", r.PathValue("id"), "rotate-secret"), nil, nil)
	if err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"object": "webhook", "id": h.ID, "signing_secret": h.Secret})
}

// eventData are the fields of all of our events that Resend's have too.
type eventData struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	Email        string          `json:"email"`
	From         json.RawMessage `json:"from"` // a text of an email, an object of a message
	To           json.RawMessage `json:"to"`
	Subject      string          `json:"subject"`
	CreatedAt    string          `json:"created_at"`
	RfcMessageID string          `json:"rfc_message_id"`
	Tags         map[string]any  `json:"tags"`
	Recipients   []struct {
		Email        string `json:"email"`
		LastResponse string `json:"last_response"`
	} `json:"recipients"`
	Recipient  string `json:"recipient"`
	BounceType string `json:"bounce_type"`
	Bounce     struct {
		SubType    *string `json:"sub_type"`
		Diagnostic *string `json:"diagnostic"`
	} `json:"bounce"`
	Link   string  `json:"link"`
	Reason string  `json:"reason"`
	Source *string `json:"source"`
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
	name := theirs[in.Type]
	var data object
	switch {
	case name == "": // a test event, which Resend does not have
		name, data = in.Type, object{}
	case in.Type == "message.received":
		var m gen.Message
		if err := m.UnmarshalJSON(in.Data); err != nil {
			return nil, "", err
		}
		data = showReceived(&m)
		data["email_id"] = m.ID
		delete(data, "id")
	default:
		var d eventData
		if err := json.Unmarshal(in.Data, &d); err != nil {
			return nil, "", err
		}
		data = d.show(in.Type)
	}
	shaped, err = json.Marshal(object{"type": name, "created_at": in.CreatedAt, "data": data})
	return shaped, "Svix", err
}

// show returns the data of an event about an email or a suppression.
func (d *eventData) show(typ string) object {
	if d.Object == "suppression" {
		origin := map[string]string{"hard_bounce": "bounce", "complaint": "complaint"}[d.Reason]
		return object{"id": d.ID, "email": d.Email, "origin": cmp.Or(origin, "manual"), "source_id": d.Source, "created_at": d.CreatedAt}
	}
	out := object{
		"email_id": d.ID, "message_id": d.RfcMessageID, "from": d.From, "to": d.To, "subject": d.Subject, "created_at": d.CreatedAt, "tags": d.Tags,
	}
	if d.Recipient != "" { // the event is about this one
		out["to"] = []string{d.Recipient}
	}
	said := ""
	if d.Bounce.Diagnostic != nil {
		said = *d.Bounce.Diagnostic
	}
	switch typ {
	case "email.bounced":
		kind, sub := "Permanent", "General"
		if d.BounceType == "soft" {
			kind = "Transient"
		}
		if d.Bounce.SubType != nil {
			sub = *d.Bounce.SubType
		}
		out["bounce"] = object{"type": kind, "subType": sub, "message": said}
	case "email.clicked":
		out["click"] = object{"link": d.Link, "timestamp": d.CreatedAt, "ipAddress": "", "userAgent": ""}
	case "email.failed":
		for _, r := range d.Recipients {
			if r.Email == d.Recipient {
				out["failed"] = object{"reason": r.LastResponse}
			}
		}
	case "email.suppressed":
		out["suppressed"] = object{"type": "OnAccountSuppressionList", "message": "The address is on the suppression list."}
	}
	return out
}
