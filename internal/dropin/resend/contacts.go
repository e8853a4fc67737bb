package resend

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// audience is the one audience, or segment: all contacts of the account.
const audience = "contacts"

func showAudience() object {
	return object{"object": "audience", "id": audience, "name": "Contacts", "created_at": "2026-01-01T00:00:00.000Z"}
}

func (server) audiences(http.ResponseWriter, *http.Request) (any, error) {
	return list([]object{showAudience()}, false), nil
}

func (server) audience(http.ResponseWriter, *http.Request) (any, error) { return showAudience(), nil }

// withAudience refuses other audiences. A path need not name one.
func withAudience(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		if id := r.PathValue("audience"); id != "" && id != audience {
			return nil, vendorapi.NotFound("audience " + id + ", other than the one with the ID " + audience + ",")
		}
		return h(w, r)
	}
}

// addContacts adds the operations of contacts below a prefix.
func (s server) addContacts(all map[string]handler, prefix string) {
	for operation, h := range map[string]handler{
		"POST": vendorapi.WithBody(s.createContact), "GET": page(s, "/v1/contacts", nil, s.show), "GET /{id}": s.contact,
		"PATCH /{id}": vendorapi.WithBody(s.updateContact), "DELETE /{id}": s.deleteContact,
	} {
		method, rest, _ := strings.Cut(operation, " ")
		all[method+" "+prefix+"/contacts"+rest] = withAudience(h)
	}
}

type contact struct {
	ID string `json:"id"` // of the path; the Go SDK sends it
	contactFields
	Unsubscribed *bool                      `json:"unsubscribed"`
	Properties   map[string]json.RawMessage `json:"properties"`
	AudienceID   string                     `json:"audience_id"` // of the path, too
}

// contactFields are those that our API has in the same form.
type contactFields struct {
	Email     string  `json:"email,omitempty"`
	FirstName *string `json:"first_name,omitempty"`
	LastName  *string `json:"last_name,omitempty"`
}

// outgoing is a contact as our API takes it.
type outgoing struct {
	contactFields
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

func (s server) createContact(r *http.Request, in *contact) (any, error) {
	c, err := vendorapi.Call[gen.Contact](r, s.API, http.MethodPost, "/v1/contacts", nil, outgoing{in.contactFields, in.Properties})
	if err == nil && in.Unsubscribed != nil && *in.Unsubscribed { // an address that is suppressed stays so
		err = s.subscribe(r, c.Email, false)
	}
	return created{"object": "contact", "id": c.ID}, err
}

// find returns the contact with the ID or the address in the path.
func (s server) find(r *http.Request) (*gen.Contact, error) {
	id := r.PathValue("id")
	if !strings.Contains(id, "@") {
		return vendorapi.Get[gen.Contact](r, s.API, "contacts", id)
	}
	l, err := vendorapi.Call[gen.ContactList](r, s.API, http.MethodGet, "/v1/contacts", url.Values{"email": {id}}, nil)
	if err == nil && len(l.Data) == 0 {
		err = vendorapi.NotFound("contact " + id)
	}
	if err != nil {
		return nil, err
	}
	return &l.Data[0], nil
}

// suppressionOf returns the entry of an address, or nil.
func (s server) suppressionOf(r *http.Request, email string) (*gen.Suppression, error) {
	l, err := vendorapi.Call[gen.SuppressionList](r, s.API, http.MethodGet, "/v1/suppressions", url.Values{"email": {email}}, nil)
	if err != nil || len(l.Data) == 0 {
		return nil, err
	}
	return &l.Data[0], nil
}

// subscribe changes whether an address gets marketing emails. An address that is suppressed
// for another reason stays so.
func (s server) subscribe(r *http.Request, email string, want bool) error {
	sup, err := s.suppressionOf(r, email)
	switch {
	case err != nil:
		return err
	case !want && sup == nil:
		inner := r.Clone(r.Context())
		inner.Header.Del("Idempotency-Key") // it is that of the contact
		_, err = s.Do(inner, http.MethodPost, "/v1/suppressions", nil, object{"email": email, "category": "marketing"})
	case want && sup != nil && sup.Category != "marketing":
		return httpapi.Invalid("unsubscribed", "cannot be false: the address is suppressed because of: %s", sup.Reason)
	case want && sup != nil:
		_, err = s.Do(r, http.MethodDelete, vendorapi.Path(r, "suppressions", email), nil, nil)
	}
	return err
}

func (s server) show(r *http.Request, c *gen.Contact) (object, error) {
	sup, err := s.suppressionOf(r, c.Email)
	return object{
		"id": c.ID, "email": c.Email, "first_name": c.FirstName, "last_name": c.LastName, "created_at": c.CreatedAt, "unsubscribed": sup != nil,
	}, err
}

func (s server) contact(_ http.ResponseWriter, r *http.Request) (any, error) {
	c, err := s.find(r)
	if err != nil {
		return nil, err
	}
	out, err := s.show(r, c)
	properties := object{}
	for name, value := range c.Metadata {
		kind := "string"
		if len(value) > 0 && value[0] != '"' {
			kind = "number"
		}
		properties[name] = object{"type": kind, "value": json.RawMessage(value)}
	}
	out["object"], out["properties"] = "contact", properties
	return out, err
}

func (s server) updateContact(r *http.Request, in *contact) (any, error) {
	c, err := s.find(r)
	if err != nil {
		return nil, err
	}
	if in.Email != "" && !strings.EqualFold(in.Email, c.Email) {
		return nil, httpapi.Invalid("email", "of a contact cannot be changed")
	}
	if in.Unsubscribed != nil {
		if err := s.subscribe(r, c.Email, !*in.Unsubscribed); err != nil {
			return nil, err
		}
	}
	in.Email = ""
	out := outgoing{in.contactFields, in.Properties}
	for name, value := range c.Metadata { // those that are not named stay
		if _, given := out.Metadata[name]; !given && out.Metadata != nil {
			out.Metadata[name] = json.RawMessage(value)
		}
	}
	_, err = s.Do(r, http.MethodPatch, vendorapi.Path(r, "contacts", c.ID), nil, out)
	return object{"object": "contact", "id": c.ID}, err
}

func (s server) deleteContact(_ http.ResponseWriter, r *http.Request) (any, error) {
	c, err := s.find(r)
	if err != nil {
		return nil, err
	}
	_, err = s.Do(r, http.MethodDelete, vendorapi.Path(r, "contacts", c.ID), nil, nil)
	return object{"object": "contact", "contact": c.ID, "id": c.ID, "deleted": true}, err
}
