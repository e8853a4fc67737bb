// Package resend is the API of Resend, for sending in production and in tests.
//
// IDs are those of Postroom: em_ for emails, msg_ for received ones. An email that needs
// approval has the ID of its draft until it is decided.
package resend

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
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

type handler = func(http.ResponseWriter, *http.Request) error

func newHandler(api vendorapi.API) http.Handler {
	s, m := server{api}, api.NewMux(refuse)
	for pattern, h := range map[string]handler{
		"POST /emails": s.send, "POST /emails/batch": s.batch, "GET /emails": page(s, "/v1/emails", fromEmail, plain(showEmail)), "GET /emails/{id}": s.email,
		"PATCH /emails/{id}": s.reschedule, "POST /emails/{id}/cancel": s.act("email", nil, http.MethodDelete, "emails"),

		"GET /emails/receiving": page(s, "/v1/messages", received, plain(showReceived)), "GET /emails/receiving/{id}": s.received,
		"GET /emails/receiving/{id}/attachments": s.attachments, "GET /emails/receiving/{id}/attachments/{attachment}": s.attachments,

		"POST /domains": s.createDomain, "GET /domains": page(s, "/v1/domains", nil, plain(showDomain)), "GET /domains/{id}": get(s, "domains", showWholeDomain),
		"POST /domains/{id}/verify": s.act("domain", nil, http.MethodPost, "domains", "verify"),
		"DELETE /domains/{id}":      s.act("domain", deleted, http.MethodDelete, "domains"),

		"POST /webhooks": s.createWebhook, "GET /webhooks": page(s, "/v1/webhooks", nil, plain(showWebhook)), "GET /webhooks/{id}": get(s, "webhooks", showWebhook),
		"PATCH /webhooks/{id}": s.updateWebhook, "POST /webhooks/{id}/signing-secret/rotate": s.rotateSecret,
		"DELETE /webhooks/{id}": s.act("webhook", deleted, http.MethodDelete, "webhooks"),

		"POST /templates": s.putTemplate, "GET /templates": page(s, "/v1/templates", nil, plain(showTemplate)), "GET /templates/{id}": get(s, "templates", showTemplate),
		"PATCH /templates/{id}": s.putTemplate, "POST /templates/{id}/publish": s.act("template", nil, http.MethodGet, "templates"),
		"DELETE /templates/{id}": s.act("template", deleted, http.MethodDelete, "templates"),
	} {
		m.Handle(pattern, h)
	}
	for _, of := range []string{"/audiences", "/segments"} { // two names of the same
		m.Handle("GET "+of, s.audiences)
		m.Handle("GET "+of+"/{audience}", s.audience)
		s.handleContacts(m, of+"/{audience}")
	}
	s.handleContacts(m, "")
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
	maxWalk  = 2000
	pageSize = 100
)

// plain makes of a conversion one that page takes.
func plain[T any](show func(*T) object) func(*http.Request, *T) (object, error) {
	return func(_ *http.Request, item *T) (object, error) { return show(item), nil }
}

// page returns the handler of a list of ours. It reads on to the item that the parameter
// after names, and shows those that follow.
func page[T any](
	s server, path string, filters func(server, *http.Request) (url.Values, error), show func(*http.Request, *T) (object, error),
) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := vendorapi.Query(r, "limit", "after")
		if err != nil {
			return err
		}
		limit, err := vendorapi.Number(q, "limit", 20, 1, pageSize)
		if err != nil {
			return err
		}
		ask := url.Values{}
		if filters != nil {
			if ask, err = filters(s, r); err != nil {
				return err
			}
		}
		ask.Set("limit", strconv.Itoa(pageSize))
		after, data := q.Get("after"), []object{}
		for seen := 0; seen < maxWalk; seen += pageSize {
			part, err := vendorapi.Call[struct {
				Data    []json.RawMessage `json:"data"`
				HasMore bool              `json:"has_more"`
				Cursor  string            `json:"cursor"`
			}](r, s.API, http.MethodGet, path, ask, nil)
			if err != nil {
				return err
			}
			for _, raw := range part.Data {
				var id struct{ ID string }
				var item T
				if err := errors.Join(json.Unmarshal(raw, &id), json.Unmarshal(raw, &item)); err != nil {
					return err
				}
				switch {
				case len(data) == limit:
					return writeList(w, data, true)
				case id.ID == after:
					after = ""
				case after == "":
					shown, err := show(r, &item)
					if err != nil {
						return err
					}
					data = append(data, shown)
				}
			}
			if !part.HasMore && after == "" {
				return writeList(w, data, false)
			}
			if !part.HasMore {
				break
			}
			ask.Set("cursor", part.Cursor)
		}
		return httpapi.Invalid("after", "is not the ID of an item among the newest %d", maxWalk)
	}
}

func writeList(w http.ResponseWriter, data []object, more bool) error {
	return vendorapi.JSON(w, http.StatusOK, object{"object": "list", "data": data, "has_more": more})
}

// get returns the handler that shows one resource of ours.
func get[T any](s server, resource string, show func(*T) object) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		v, err := vendorapi.Call[T](r, s.API, http.MethodGet, vendorapi.Path(resource, r.PathValue("id")), nil, nil)
		if err != nil {
			return err
		}
		return vendorapi.JSON(w, http.StatusOK, show(&v))
	}
}

var deleted = object{"deleted": true}

// act returns the handler that calls an operation of ours on a resource, and returns its ID
// and extra.
func (s server) act(name string, extra object, method, resource string, action ...string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		path := vendorapi.Path(append([]string{resource, r.PathValue("id")}, action...)...)
		if _, err := s.Do(r, method, path, nil, nil); err != nil {
			return err
		}
		out := object{"object": name, "id": r.PathValue("id")}
		maps.Copy(out, extra)
		return vendorapi.JSON(w, http.StatusOK, out)
	}
}
