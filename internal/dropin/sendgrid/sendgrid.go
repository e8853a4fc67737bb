// Package sendgrid is the sending API of SendGrid, for development: its mail is captured.
//
// Settings without a counterpart, such as categories, are in the header X-SendGrid-Settings
// of the captured mail, so that tests can check them.
package sendgrid

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "sendgrid", Dev: true, Operations: operations, Refuse: refuse}

func operations(api vendorapi.API) map[string]vendorapi.Handler {
	return map[string]vendorapi.Handler{"POST /v3/mail/send": func(w http.ResponseWriter, r *http.Request) (any, error) {
		return nil, send(w, r, api)
	}}
}

// refuse returns an error as SendGrid does.
func refuse(e *httpapi.Error) (int, any) {
	return e.Status, vendorapi.Object{"errors": []vendorapi.Object{{"message": e.Message, "field": e.Param, "help": ""}}}
}

type (
	message struct {
		settings
		From             vendorapi.Address   `json:"from"`
		ReplyTo          *vendorapi.Address  `json:"reply_to"`
		ReplyToList      []vendorapi.Address `json:"reply_to_list"`
		Subject          string              `json:"subject"`
		Personalizations []personalization   `json:"personalizations"`
		Content          []content           `json:"content"`
		Attachments      []attachment        `json:"attachments"`
		TemplateID       string              `json:"template_id"`
		Headers          map[string]string   `json:"headers"`
		SendAt           int64               `json:"send_at"`
	}
	// settings have no counterpart.
	settings struct {
		ASM              json.RawMessage   `json:"asm,omitempty"`
		BatchID          string            `json:"batch_id,omitempty"`
		Categories       []string          `json:"categories,omitempty"`
		CustomArgs       map[string]string `json:"custom_args,omitempty"`
		IPPoolName       string            `json:"ip_pool_name,omitempty"`
		TrackingSettings json.RawMessage   `json:"tracking_settings,omitempty"`
	}
	personalization struct {
		To, Cc, Bcc []vendorapi.Address
		Subject     string
		Headers     map[string]string
		Data        json.RawMessage   `json:"dynamic_template_data"`
		CustomArgs  map[string]string `json:"custom_args"`
		SendAt      int64             `json:"send_at"`
	}
	content    struct{ Type, Value string }
	attachment struct {
		Content, Type, Filename, Disposition string
		ContentID                            string `json:"content_id"`
	}
)

// send sends one email for each personalization.
func send(w http.ResponseWriter, r *http.Request, api vendorapi.API) error {
	var in message
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	if in.ReplyTo != nil {
		in.ReplyToList = append(in.ReplyToList, *in.ReplyTo)
	}
	common := vendorapi.Email{Template: in.TemplateID, Fields: vendorapi.Fields{From: in.From, ReplyTo: in.ReplyToList}}
	for _, c := range in.Content {
		switch c.Type {
		case "text/plain":
			common.Text = c.Value
		case "text/html":
			common.HTML = c.Value
		default:
			return vendorapi.Unsupported("content " + c.Type)
		}
	}
	for _, a := range in.Attachments {
		f := vendorapi.File{Filename: a.Filename, Content: a.Content, ContentType: a.Type}
		if a.Disposition == "inline" {
			f.ContentID = a.ContentID
		}
		common.Attachments = append(common.Attachments, f)
	}
	if len(in.Personalizations) == 0 || len(in.Personalizations) > 1000 {
		return httpapi.Invalid("personalizations", "must be 1 to 1000 entries")
	}
	var first string
	for _, p := range in.Personalizations {
		e, err := in.email(common, p)
		if err != nil {
			return err
		}
		id, err := api.Send(r, e)
		if err != nil {
			return err
		}
		first = cmp.Or(first, id)
	}
	w.Header().Set("X-Message-Id", first)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// email returns the email to the recipients of one personalization.
func (in *message) email(e vendorapi.Email, p personalization) (vendorapi.Email, error) {
	e.To, e.Cc, e.Bcc, e.Subject, e.Data = p.To, p.Cc, p.Bcc, cmp.Or(p.Subject, in.Subject), p.Data
	if at := cmp.Or(p.SendAt, in.SendAt); at != 0 {
		e.ScheduledAt = time.Unix(at, 0).UTC().Format(time.RFC3339)
	}
	e.Headers = map[string]string{}
	maps.Copy(e.Headers, in.Headers)
	maps.Copy(e.Headers, p.Headers)
	left := in.settings
	left.CustomArgs = map[string]string{}
	maps.Copy(left.CustomArgs, in.CustomArgs)
	maps.Copy(left.CustomArgs, p.CustomArgs)
	b, err := json.Marshal(left)
	if string(b) != "{}" {
		e.Headers["X-SendGrid-Settings"] = string(b)
	}
	return e, err
}
