// Package resend is the API of Resend, for sending in production and in tests.
//
// IDs are those of Postroom: em_ for emails, msg_ for received ones. An email that needs
// approval has the ID of its draft until it is decided.
package resend

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

const name = "resend"

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: name, New: newHandler, Refuse: refuse, Event: event}

type (
	server struct{ vendorapi.API }
	object = vendorapi.Object
)

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	m.Handle("POST /emails", s.send)
	m.Handle("POST /emails/batch", s.batch)
	m.Handle("GET /emails", s.emails)
	m.Handle("GET /emails/{id}", s.email)
	m.Handle("PATCH /emails/{id}", s.reschedule)
	m.Handle("POST /emails/{id}/cancel", s.cancel)

	m.Handle("GET /emails/receiving", s.receivedList)
	m.Handle("GET /emails/receiving/{id}", s.received)
	m.Handle("GET /emails/receiving/{id}/attachments", s.attachments)
	m.Handle("GET /emails/receiving/{id}/attachments/{attachment}", s.attachment)

	m.Handle("POST /domains", s.createDomain)
	m.Handle("GET /domains", s.domains)
	m.Handle("GET /domains/{id}", s.domain)
	m.Handle("POST /domains/{id}/verify", s.verifyDomain)
	m.Handle("DELETE /domains/{id}", s.remove("domain", "domains"))

	m.Handle("POST /webhooks", s.createWebhook)
	m.Handle("GET /webhooks", s.webhooks)
	m.Handle("GET /webhooks/{id}", s.webhook)
	m.Handle("PATCH /webhooks/{id}", s.updateWebhook)
	m.Handle("POST /webhooks/{id}/signing-secret/rotate", s.rotateSecret)
	m.Handle("DELETE /webhooks/{id}", s.remove("webhook", "webhooks"))

	m.Handle("POST /templates", s.createTemplate)
	m.Handle("GET /templates", s.templates)
	m.Handle("GET /templates/{id}", s.template)
	m.Handle("PATCH /templates/{id}", s.updateTemplate)
	m.Handle("POST /templates/{id}/publish", s.publishTemplate)
	m.Handle("DELETE /templates/{id}", s.remove("template", "templates"))

	for _, of := range []string{"/audiences", "/segments"} {
		m.Handle("GET "+of, s.audiences)
		m.Handle("GET "+of+"/{audience}", inAudience(s.audience))
		m.Handle("POST "+of+"/{audience}/contacts", inAudience(s.createContact))
		m.Handle("GET "+of+"/{audience}/contacts", inAudience(s.contacts))
		m.Handle("GET "+of+"/{audience}/contacts/{id}", inAudience(s.contact))
		m.Handle("PATCH "+of+"/{audience}/contacts/{id}", inAudience(s.updateContact))
		m.Handle("DELETE "+of+"/{audience}/contacts/{id}", inAudience(s.deleteContact))
	}
	m.Handle("POST /contacts", s.createContact)
	m.Handle("GET /contacts", s.contacts)
	m.Handle("GET /contacts/{id}", s.contact)
	m.Handle("PATCH /contacts/{id}", s.updateContact)
	m.Handle("DELETE /contacts/{id}", s.deleteContact)

	m.Handle("POST /suppressions", s.suppress)
	m.Handle("GET /suppressions", s.suppressions)
	m.Handle("GET /suppressions/{id}", s.suppression)
	m.Handle("DELETE /suppressions/{id}", s.unsuppress)
	return m
}

// names are Resend's names of errors, by our codes. The others go by their status.
var names = map[string]string{
	gen.ErrorCodeUnauthorized: "invalid_api_key", gen.ErrorCodeInsufficientScope: "restricted_api_key", gen.ErrorCodeDomainNotVerified: "validation_error",
	gen.ErrorCodeIdempotencyKeyReused: "invalid_idempotent_request", gen.ErrorCodeIdempotencyInProgress: "concurrent_idempotent_requests",
	gen.ErrorCodeRateLimited: "rate_limit_exceeded", gen.ErrorCodeMonthlyLimitReached: "monthly_quota_exceeded",
	gen.ErrorCodeMethodNotAllowed: "method_not_allowed",
}

var namesByStatus = map[int]string{
	http.StatusForbidden: "invalid_access", http.StatusNotFound: "not_found", http.StatusTooManyRequests: "daily_quota_exceeded",
	http.StatusInternalServerError: "internal_server_error", http.StatusServiceUnavailable: "application_error",
}

// failure returns an error in Resend's form.
func failure(e *httpapi.Error) object {
	status, name := e.Status, cmp.Or(names[e.Code], namesByStatus[e.Status], "validation_error")
	switch {
	case strings.HasSuffix(e.Message, "is required"):
		name = "missing_required_field"
	case e.Code == gen.ErrorCodeIdempotencyKeyReused:
		status = http.StatusConflict
	}
	if status == http.StatusBadRequest {
		status = http.StatusUnprocessableEntity
	}
	return object{"statusCode": status, "name": name, "message": e.Message}
}

func refuse(w http.ResponseWriter, e *httpapi.Error) {
	body := failure(e)
	status, _ := body["statusCode"].(int)
	_ = vendorapi.JSON(w, status, body) // strings and numbers always encode
}

// unsupported is a value that has no counterpart here: only null and what changes nothing are
// allowed.
type unsupported struct{ given bool }

// UnmarshalJSON implements json.Unmarshaler.
func (u *unsupported) UnmarshalJSON(b []byte) error {
	u.given = string(b) != "null"
	return nil
}

// unsupportedAmong returns an error that names the first of the fields that was given.
func unsupportedAmong(fields ...any) error {
	for i := 0; i < len(fields); i += 2 {
		name, _ := fields[i].(string)
		if u, _ := fields[i+1].(unsupported); u.given {
			return vendorapi.Unsupported(name)
		}
	}
	return nil
}

// list is one string or a list of them.
type list []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *list) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*l = list{""}
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]string)(l))
}

const (
	// maxWalk is how many items a page may skip to find the one that it begins after.
	maxWalk = 2000
	pageOf  = 100
)

// page reads a page of a list of ours: limit items that follow the one that the parameter
// after names. It writes them as show returns them.
func page[T any](w http.ResponseWriter, r *http.Request, s server, path string, filters url.Values, id func(*T) string, show func(*T) (object, error)) error {
	q, err := vendorapi.Query(r, "limit", "after")
	if err != nil {
		return err
	}
	limit, err := vendorapi.Number(q, "limit", 20, 1, pageOf)
	if err != nil {
		return err
	}
	ask := url.Values{"limit": {"100"}}
	for name, value := range filters {
		ask[name] = value
	}
	after, data := q.Get("after"), []object{}
	for seen := 0; ; {
		part, err := vendorapi.Call[struct {
			Data    []T     `json:"data"`
			HasMore bool    `json:"has_more"`
			Cursor  *string `json:"cursor"`
		}](r, s.API, http.MethodGet, path, ask, nil)
		if err != nil {
			return err
		}
		for i := range part.Data {
			item := &part.Data[i]
			switch {
			case len(data) == limit:
				return vendorapi.JSON(w, http.StatusOK, object{"object": "list", "data": data, "has_more": true})
			case after == "":
				shown, err := show(item)
				if err != nil {
					return err
				}
				data = append(data, shown)
			case id(item) == after:
				after = ""
			}
		}
		seen += len(part.Data)
		if part.HasMore && part.Cursor != nil && seen < maxWalk+limit {
			ask.Set("cursor", *part.Cursor)
			continue
		}
		if after != "" {
			return httpapi.Invalid("after", "is not the ID of an item among the newest %d", maxWalk)
		}
		return vendorapi.JSON(w, http.StatusOK, object{"object": "list", "data": data, "has_more": part.HasMore})
	}
}

// remove returns the handler of a deletion.
func (s server) remove(name, resource string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := s.Do(r, http.MethodDelete, vendorapi.Path(resource, r.PathValue("id")), nil, nil); err != nil {
			return err
		}
		return vendorapi.JSON(w, http.StatusOK, object{"object": name, "id": r.PathValue("id"), "deleted": true})
	}
}

// orNull returns nil, which is null, for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
