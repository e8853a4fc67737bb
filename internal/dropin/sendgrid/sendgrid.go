// Package sendgrid is the sending API of SendGrid, for development: its mail is captured.
//
// Settings without a counterpart, such as categories, are in the header X-SMTPAPI of the
// captured mail, so that tests can check them.
package sendgrid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "sendgrid", Dev: true, New: newHandler, Refuse: refuse}

func newHandler(api vendorapi.API) http.Handler {
	m := api.NewMux(refuse)
	m.Handle("POST /v3/mail/send", server{api}.send)
	return m
}

type server struct{ vendorapi.API }

type fault struct {
	Message string  `json:"message"`
	Field   *string `json:"field"`
	Help    *string `json:"help"`
}

// refuse writes an error as SendGrid does.
func refuse(w http.ResponseWriter, e *httpapi.Error) {
	f := fault{Message: e.Message}
	if e.Param != "" {
		f.Field = &e.Param
	}
	_ = vendorapi.JSON(w, e.Status, map[string][]fault{"errors": {f}}) // strings always encode
}

type (
	message struct {
		From             vendorapi.Address          `json:"from"`
		ReplyTo          *vendorapi.Address         `json:"reply_to"`
		ReplyToList      []vendorapi.Address        `json:"reply_to_list"`
		Subject          string                     `json:"subject"`
		Personalizations []personalization          `json:"personalizations"`
		Content          []content                  `json:"content"`
		Attachments      []attachment               `json:"attachments"`
		TemplateID       string                     `json:"template_id"`
		Headers          map[string]string          `json:"headers"`
		SendAt           int64                      `json:"send_at"`
		Categories       []string                   `json:"categories"`
		CustomArgs       map[string]string          `json:"custom_args"`
		ASM              json.RawMessage            `json:"asm"`
		BatchID          string                     `json:"batch_id"`
		IPPoolName       string                     `json:"ip_pool_name"`
		MailSettings     map[string]json.RawMessage `json:"mail_settings"`
		TrackingSettings json.RawMessage            `json:"tracking_settings"`
	}
	personalization struct {
		From         *vendorapi.Address  `json:"from"`
		To           []vendorapi.Address `json:"to"`
		Cc           []vendorapi.Address `json:"cc"`
		Bcc          []vendorapi.Address `json:"bcc"`
		Subject      string              `json:"subject"`
		Headers      map[string]string   `json:"headers"`
		Data         json.RawMessage     `json:"dynamic_template_data"`
		Substitution map[string]string   `json:"substitutions"`
		CustomArgs   map[string]string   `json:"custom_args"`
		SendAt       int64               `json:"send_at"`
	}
	content struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	}
	attachment struct {
		Content     string `json:"content"`
		Type        string `json:"type"`
		Filename    string `json:"filename"`
		Disposition string `json:"disposition"`
		ContentID   string `json:"content_id"`
	}
)

// send sends one email for each personalization.
func (s server) send(w http.ResponseWriter, r *http.Request) error {
	var in message
	if err := vendorapi.Decode(r, &in); err != nil {
		return err
	}
	common := vendorapi.Email{Template: in.TemplateID, ReplyTo: in.ReplyToList}
	if in.ReplyTo != nil {
		common.ReplyTo = append(common.ReplyTo, *in.ReplyTo)
	}
	for i, c := range in.Content {
		switch c.Type {
		case "text/plain":
			common.Text = c.Value
		case "text/html":
			common.HTML = c.Value
		default:
			return httpapi.Invalid(fmt.Sprintf("content[%d].type", i), "must be text/plain or text/html")
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
	emails := make([]vendorapi.Email, len(in.Personalizations))
	for i, p := range in.Personalizations {
		e, err := in.personal(common, p)
		if err != nil {
			return err
		}
		emails[i] = e
	}
	var first string
	for _, e := range emails {
		id, err := s.Send(r, e)
		if err != nil {
			return err
		}
		first = cmp.Or(first, id)
	}
	w.Header().Set("X-Message-Id", first)
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// personal returns the email to the recipients of one personalization.
func (in *message) personal(e vendorapi.Email, p personalization) (vendorapi.Email, error) {
	e.From, e.To, e.Cc, e.Bcc, e.Subject, e.Data = in.From, p.To, p.Cc, p.Bcc, cmp.Or(p.Subject, in.Subject), p.Data
	if p.From != nil {
		e.From = *p.From
	}
	if at := cmp.Or(p.SendAt, in.SendAt); at != 0 {
		e.ScheduledAt = time.Unix(at, 0).UTC().Format(time.RFC3339)
	}
	if len(p.Substitution) > 0 {
		var pairs []string
		for from, to := range p.Substitution {
			pairs = append(pairs, from, to)
		}
		fill := strings.NewReplacer(pairs...)
		e.Subject, e.Text, e.HTML = fill.Replace(e.Subject), fill.Replace(e.Text), fill.Replace(e.HTML)
	}
	e.Headers = map[string]string{}
	maps.Copy(e.Headers, in.Headers)
	maps.Copy(e.Headers, p.Headers)
	args := maps.Clone(in.CustomArgs)
	if args == nil {
		args = map[string]string{}
	}
	maps.Copy(args, p.CustomArgs)
	if _, sandbox := in.MailSettings["sandbox_mode"]; sandbox {
		return e, vendorapi.Unsupported("mail_settings.sandbox_mode")
	}
	rest, err := json.Marshal(struct {
		Categories []string                   `json:"category,omitempty"`
		Args       map[string]string          `json:"unique_args,omitempty"`
		ASM        json.RawMessage            `json:"asm,omitempty"`
		Batch      string                     `json:"batch_id,omitempty"`
		Pool       string                     `json:"ip_pool,omitempty"`
		Mail       map[string]json.RawMessage `json:"mail_settings,omitempty"`
		Tracking   json.RawMessage            `json:"tracking_settings,omitempty"`
	}{in.Categories, args, in.ASM, in.BatchID, in.IPPoolName, in.MailSettings, in.TrackingSettings})
	if err != nil {
		return e, &httpapi.Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidJson, Message: err.Error()}
	}
	if string(rest) != "{}" {
		e.Headers["X-SMTPAPI"] = string(rest)
	}
	return e, nil
}
