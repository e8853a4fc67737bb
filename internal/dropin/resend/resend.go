// Package resend is the API of Resend, for sending in production and in tests.
//
// IDs are those of Postroom: em_ for emails, msg_ for received ones. An email that needs
// approval has the ID of its draft until it is decided.
package resend

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

const name = "resend"

// Vendor is the API.
var Vendor = vendorapi.Vendor{Name: name, Operations: operations, Refuse: refuse, Event: event}

type (
	server  struct{ vendorapi.API }
	object  = vendorapi.Object
	created = vendorapi.Created
	handler = vendorapi.Handler
)

func operations(api vendorapi.API) map[string]handler {
	s := server{api}
	all := map[string]handler{
		"POST /emails": vendorapi.WithBody(s.send), "POST /emails/batch": vendorapi.WithBody(s.batch),
		"GET /emails": page(s, "/v1/emails", fromEmail, plain(showEmail)), "GET /emails/{id}": s.email,
		"PATCH /emails/{id}": vendorapi.WithBody(s.reschedule), "POST /emails/{id}/cancel": s.act("email", nil, http.MethodDelete, "emails"),

		"GET /emails/receiving": page(s, "/v1/messages", received, plain(showReceived)), "GET /emails/receiving/{id}": s.received,
		"GET /emails/receiving/{id}/attachments": s.attachments, "GET /emails/receiving/{id}/attachments/{attachment}": s.attachments,

		"POST /domains": vendorapi.WithBody(s.createDomain), "GET /domains": page(s, "/v1/domains", nil, plain(showDomain)),
		"GET /domains/{id}":         vendorapi.Show(api, showWholeDomain, "domains", "{id}"),
		"POST /domains/{id}/verify": s.act("domain", nil, http.MethodPost, "domains", "verify"),
		"DELETE /domains/{id}":      s.act("domain", deleted, http.MethodDelete, "domains"),

		"POST /webhooks": vendorapi.WithBody(s.createWebhook), "GET /webhooks": page(s, "/v1/webhooks", nil, plain(showWebhook)),
		"GET /webhooks/{id}": vendorapi.Show(api, showWebhook, "webhooks", "{id}"), "PATCH /webhooks/{id}": vendorapi.WithBody(s.updateWebhook),
		"POST /webhooks/{id}/signing-secret/rotate": s.rotateSecret,
		"DELETE /webhooks/{id}":                     s.act("webhook", deleted, http.MethodDelete, "webhooks"),

		"POST /templates": vendorapi.WithBody(s.createTemplate), "GET /templates": page(s, "/v1/templates", nil, plain(showTemplate)),
		"GET /templates/{id}": vendorapi.Show(api, showTemplate, "templates", "{id}"), "PATCH /templates/{id}": vendorapi.WithBody(s.updateTemplate),
		"POST /templates/{id}/publish": s.act("template", nil, http.MethodGet, "templates"),
		"DELETE /templates/{id}":       s.act("template", deleted, http.MethodDelete, "templates"),
	}
	for _, of := range []string{"/audiences", "/segments"} { // two names of the same
		all["GET "+of] = s.audiences
		all["GET "+of+"/{audience}"] = withAudience(s.audience)
		s.addContacts(all, of+"/{audience}")
	}
	s.addContacts(all, "")
	return all
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

// refuse returns an error in Resend's form.
func refuse(e *httpapi.Error) (int, any) {
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
	return status, object{"statusCode": status, "name": name, "message": e.Message}
}

// plain makes of a conversion one that page takes.
func plain[T any](show func(*T) object) func(*http.Request, *T) (object, error) {
	return func(_ *http.Request, item *T) (object, error) { return show(item), nil }
}

// page returns the handler of a list of ours. It reads on to the item that the parameter
// after names, and shows those that follow.
func page[T any, P interface {
	*T
	GetID() string
}](s server, path string, filters func(server, *http.Request) (url.Values, error), show func(*http.Request, *T) (object, error)) handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		q, err := vendorapi.Query(r, "limit", "after")
		if err != nil {
			return nil, err
		}
		limit, err := vendorapi.Number(q, "limit", 20, 1, 100)
		if err != nil {
			return nil, err
		}
		ask := url.Values{}
		if filters != nil {
			if ask, err = filters(s, r); err != nil {
				return nil, err
			}
		}
		after, data := q.Get("after"), []object{}
		unknown := httpapi.Invalid("after", "is not the ID of an item among the newest %d", vendorapi.MaxRead)
		for item, err := range vendorapi.List[T](r, s.API, path, ask) {
			switch {
			case len(data) == limit:
				return list(data, true), nil
			case errors.Is(err, vendorapi.ErrMore):
				return nil, unknown
			case err != nil:
				return nil, err
			case P(item).GetID() == after:
				after = ""
			case after == "":
				shown, err := show(r, item)
				if err != nil {
					return nil, err
				}
				data = append(data, shown)
			}
		}
		if after != "" {
			return nil, unknown
		}
		return list(data, false), nil
	}
}

func list(data []object, more bool) object {
	return object{"object": "list", "data": data, "has_more": more}
}

var deleted = object{"deleted": true}

// act returns the handler that calls an operation of ours on a resource, and returns its ID
// and extra.
func (s server) act(name string, extra object, method, resource string, action ...string) handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		_, err := s.Do(r, method, vendorapi.Path(r, append([]string{resource, "{id}"}, action...)...), nil, nil)
		out := object{"object": name, "id": r.PathValue("id")}
		maps.Copy(out, extra)
		return out, err
	}
}

// patch changes the resource in the path.
func (s server) patch(r *http.Request, name, resource string, body object) (any, error) {
	_, err := s.Do(r, http.MethodPatch, vendorapi.Path(r, resource, "{id}"), nil, body)
	return object{"object": name, "id": r.PathValue("id")}, err
}
