// Package postmark is the sending API of Postmark, for development: its mail is captured.
//
// Settings without a counterpart, such as the tag, are in the header fields of the captured
// mail with which Postmark takes them over SMTP, so that tests can check them.
package postmark

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: "postmark", Dev: true, Operations: operations, Refuse: refuse}

func operations(api vendorapi.API) map[string]vendorapi.Handler {
	s := server{api}
	return map[string]vendorapi.Handler{
		"POST /email": vendorapi.WithBody(s.send), "POST /email/withTemplate": vendorapi.WithBody(s.send),
		"POST /email/batch": vendorapi.WithBody(s.batch),
		"POST /email/batchWithTemplates": vendorapi.WithBody(func(r *http.Request, in *struct{ Messages []message }) (any, error) {
			return s.batch(r, &in.Messages)
		}),
	}
}

type server struct{ vendorapi.API }

// codes are Postmark's numbers of errors, by our codes. Others are 300, an invalid request.
var codes = map[string]int{
	gen.ErrorCodeUnauthorized: 10, gen.ErrorCodeInvalidJson: 402, gen.ErrorCodeRecipientSuppressed: 406,
	gen.ErrorCodeRateLimited: 429, gen.ErrorCodeInternalError: 500, gen.ErrorCodeUnavailable: 503,
}

func failure(e *httpapi.Error) vendorapi.Object {
	return vendorapi.Object{"ErrorCode": cmp.Or(codes[e.Code], 300), "Message": e.Message}
}

// refuse returns an error as Postmark does.
func refuse(e *httpapi.Error) (int, any) {
	status := e.Status
	if status == http.StatusBadRequest || status == http.StatusForbidden || status == http.StatusConflict {
		status = http.StatusUnprocessableEntity
	}
	return status, failure(e)
}

type message struct {
	From, To, Cc, Bcc, ReplyTo       string
	Subject, Tag, TextBody, HTMLBody string
	MessageStream, TrackLinks        string
	TrackOpens                       *bool
	Headers                          []struct{ Name, Value string }
	Metadata                         map[string]string
	Attachments                      []struct{ Name, Content, ContentType, ContentID string }
	TemplateAlias                    string
	TemplateModel                    json.RawMessage
}

// email converts a message.
func (m *message) email() (e vendorapi.Email, err error) {
	e.Subject, e.Text, e.HTML, e.Template, e.Data, e.Headers = m.Subject, m.TextBody, m.HTMLBody, m.TemplateAlias, m.TemplateModel, map[string]string{}
	from, err := vendorapi.Addresses("From", m.From)
	if err != nil || len(from) != 1 {
		return e, httpapi.Invalid("From", "must be one email address")
	}
	e.From = from[0]
	for _, f := range []struct {
		name, value string
		to          *any
	}{{"To", m.To, &e.To}, {"Cc", m.Cc, &e.Cc}, {"Bcc", m.Bcc, &e.Bcc}, {"ReplyTo", m.ReplyTo, &e.ReplyTo}} {
		if *f.to, err = vendorapi.Addresses(f.name, f.value); err != nil {
			return e, err
		}
	}
	for _, h := range m.Headers {
		if e.Headers[h.Name] != "" {
			return e, httpapi.Invalid("Headers", "names %s twice", h.Name)
		}
		e.Headers[h.Name] = h.Value
	}
	for name, value := range map[string]string{"Tag": m.Tag, "Message-Stream": m.MessageStream, "TrackLinks": m.TrackLinks} {
		if value != "" {
			e.Headers["X-PM-"+name] = value
		}
	}
	if m.TrackOpens != nil {
		e.Headers["X-PM-TrackOpens"] = strconv.FormatBool(*m.TrackOpens)
	}
	for name, value := range m.Metadata {
		e.Headers["X-PM-Metadata-"+name] = value
	}
	for _, a := range m.Attachments {
		e.Attachments = append(e.Attachments, vendorapi.File{
			Filename: a.Name, Content: a.Content, ContentType: a.ContentType, ContentID: strings.TrimPrefix(a.ContentID, "cid:"),
		})
	}
	return e, nil
}

func (s server) send(r *http.Request, m *message) (any, error) {
	e, err := m.email()
	if err != nil {
		return nil, err
	}
	id, err := s.Send(r, e)
	return vendorapi.Object{
		"To": m.To, "Cc": m.Cc, "Bcc": m.Bcc, "SubmittedAt": time.Now().UTC(), "MessageID": id, "ErrorCode": 0, "Message": "OK",
	}, err
}

// batch sends messages, of which each fails alone.
func (s server) batch(r *http.Request, all *[]message) (any, error) {
	if len(*all) == 0 || len(*all) > 500 {
		return nil, httpapi.Invalid("", "a batch has 1 to 500 messages, not %d", len(*all))
	}
	out := make([]any, len(*all))
	for i := range *all {
		sent, err := s.send(r, &(*all)[i])
		if e, refused := errors.AsType[*httpapi.Error](err); refused {
			sent = failure(e)
		} else if err != nil {
			return nil, err
		}
		out[i] = sent
	}
	return out, nil
}
