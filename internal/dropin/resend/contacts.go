package resend

import (
	"encoding/json"
	"fmt"
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

func (s server) audiences(w http.ResponseWriter, _ *http.Request) error {
	return writeList(w, []object{showAudience()}, false)
}

func (s server) audience(w http.ResponseWriter, r *http.Request) error {
	if err := checkAudience(r); err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, showAudience())
}

// checkAudience refuses other audiences. A path need not name one.
func checkAudience(r *http.Request) error {
	if id := r.PathValue("audience"); id != "" && id != audience {
		return notFound("audience " + id + ", other than the one with the ID " + audience + ",")
	}
	return nil
}

// handleContacts registers the operations of contacts below a prefix.
func (s server) handleContacts(m *vendorapi.Mux, prefix string) {
	for pattern, h := range map[string]handler{
		"POST %s/contacts": s.createContact, "GET %s/contacts": page(s, "/v1/contacts", nil, s.show), "GET %s/contacts/{id}": s.contact,
		"PATCH %s/contacts/{id}": s.updateContact, "DELETE %s/contacts/{id}": s.deleteContact,
	} {
		m.Handle(fmt.Sprintf(pattern, prefix), func(w http.ResponseWriter, r *http.Request) error {
			if err := checkAudience(r); err != nil {
				return err
			}
			return h(w, r)
		})
	}
}

type contact struct {
	ID           string                     `json:"id"` // of the path; the Go SDK sends it
	Email        string                     `json:"email"`
	FirstName    *string                    `json:"first_name"`
	LastName     *string                    `json:"last_name"`
	Unsubscribed *bool                      `json:"unsubscribed"`
	Properties   map[string]json.RawMessage `json:"properties"`
	AudienceID   string                     `json:"audience_id"` // of the path, too
	Segments     unsupported                `json:"segments"`
	Topics       unsupported                `json:"topics"`
}

// decodeContact reads a contact, and the fields of our API.
func decodeContact(r *http.Request) (contact, object, error) {
	var in contact
	if err := vendorapi.Decode(r, &in); err != nil {
		return in, nil, err
	}
	out := object{}
	if in.FirstName != nil {
		out["first_name"] = *in.FirstName
	}
	if in.LastName != nil {
		out["last_name"] = *in.LastName
	}
	if in.Properties != nil {
		out["metadata"] = in.Properties
	}
	return in, out, unsupportedAmong("segments", in.Segments, "topics", in.Topics)
}

func (s server) createContact(w http.ResponseWriter, r *http.Request) error {
	in, out, err := decodeContact(r)
	if err != nil {
		return err
	}
	out["email"] = in.Email
	c, err := vendorapi.Call[gen.Contact](r, s.API, http.MethodPost, "/v1/contacts", nil, out)
	if err != nil {
		return err
	}
	if in.Unsubscribed != nil && *in.Unsubscribed { // a new contact may have an address that is suppressed: that stays
		if err := s.subscribe(r, c.Email, false); err != nil {
			return err
		}
	}
	return vendorapi.JSON(w, http.StatusCreated, object{"object": "contact", "id": c.ID})
}

// find returns the contact with the ID or the address in the path.
func (s server) find(r *http.Request) (*gen.Contact, error) {
	id := r.PathValue("id")
	if !strings.Contains(id, "@") {
		c, err := vendorapi.Call[gen.Contact](r, s.API, http.MethodGet, vendorapi.Path("contacts", id), nil, nil)
		return &c, err
	}
	l, err := vendorapi.Call[gen.ContactList](r, s.API, http.MethodGet, "/v1/contacts", url.Values{"email": {id}}, nil)
	if err == nil && len(l.Data) == 0 {
		err = notFound("contact " + id)
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
		_, err = s.Do(r, http.MethodDelete, vendorapi.Path("suppressions", email), nil, nil)
	}
	return err
}

func (s server) show(r *http.Request, c *gen.Contact) (object, error) {
	sup, err := s.suppressionOf(r, c.Email)
	return object{
		"id": c.ID, "email": c.Email, "first_name": c.FirstName, "last_name": c.LastName, "created_at": c.CreatedAt, "unsubscribed": sup != nil,
	}, err
}

func (s server) contact(w http.ResponseWriter, r *http.Request) error {
	c, err := s.find(r)
	if err != nil {
		return err
	}
	out, err := s.show(r, c)
	if err != nil {
		return err
	}
	properties := object{}
	for name, value := range c.Metadata {
		kind := "string"
		if len(value) > 0 && value[0] != '"' {
			kind = "number"
		}
		properties[name] = object{"type": kind, "value": json.RawMessage(value)}
	}
	out["object"], out["properties"] = "contact", properties
	return vendorapi.JSON(w, http.StatusOK, out)
}

func (s server) updateContact(w http.ResponseWriter, r *http.Request) error {
	in, out, err := decodeContact(r)
	if err != nil {
		return err
	}
	c, err := s.find(r)
	if err != nil {
		return err
	}
	if in.Unsubscribed != nil {
		if err := s.subscribe(r, c.Email, !*in.Unsubscribed); err != nil {
			return err
		}
	}
	if in.Properties != nil { // those that are not named stay
		all := c.Metadata
		if all == nil {
			all = gen.FreeObject{}
		}
		for name, value := range in.Properties {
			all[name] = []byte(value)
		}
		out["metadata"] = all
	}
	if _, err := s.Do(r, http.MethodPatch, vendorapi.Path("contacts", c.ID), nil, out); err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"object": "contact", "id": c.ID})
}

func (s server) deleteContact(w http.ResponseWriter, r *http.Request) error {
	c, err := s.find(r)
	if err != nil {
		return err
	}
	if _, err := s.Do(r, http.MethodDelete, vendorapi.Path("contacts", c.ID), nil, nil); err != nil {
		return err
	}
	return vendorapi.JSON(w, http.StatusOK, object{"object": "contact", "contact": c.ID, "id": c.ID, "deleted": true})
}
