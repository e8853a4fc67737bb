package handlers

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// CreateContact implements POST /v1/contacts.
func (a *API) CreateContact(ctx context.Context, req *gen.ContactCreate, _ gen.CreateContactParams) (*gen.Contact, error) {
	in, err := contactFromAPI("", req)
	if err != nil {
		return nil, err
	}
	c := store.Contact{AccountID: httpapi.Caller(ctx).AccountID, Email: in.Email, EmailFold: in.EmailFold}
	c.Metadata.V, c.Tags.V = json.RawMessage(`{}`), store.Labels{}
	in.Edit(&c)
	c, err = a.store.CreateContact(ctx, c, once(ctx, http.StatusCreated, "Contact", contactToAPI))
	return result(c, err, contactToAPI)
}

// GetContact implements GET /v1/contacts/{id}.
func (a *API) GetContact(ctx context.Context, p gen.GetContactParams) (*gen.Contact, error) {
	c, err := a.store.Contact(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return result(c, err, contactToAPI)
}

// ListContacts implements GET /v1/contacts.
func (a *API) ListContacts(ctx context.Context, p gen.ListContactsParams) (*gen.ContactList, error) {
	l, err := a.store.ListContacts(ctx, httpapi.Caller(ctx).AccountID, mail.FoldAddress(p.Email.Or("")), pageOf(p.Limit, p.Cursor))
	return listToAPI[gen.ContactList](l, err, contactToAPI)
}

// UpdateContact implements PATCH /v1/contacts/{id}.
func (a *API) UpdateContact(ctx context.Context, req *gen.ContactUpdate, p gen.UpdateContactParams) (*gen.Contact, error) {
	if email, ok := req.Email.Get(); ok {
		if err := mail.ValidAddress(string(email)); err != nil {
			return nil, httpapi.Invalid("email", "%s", err)
		}
	}
	known := contactFields{first: req.FirstName, last: req.LastName}
	if err := known.label("", req.Metadata, req.Tags); err != nil {
		return nil, err
	}
	c, err := a.store.UpdateContact(ctx, httpapi.Caller(ctx).AccountID, p.ID, func(c *store.Contact) {
		if email, ok := req.Email.Get(); ok {
			c.Email, c.EmailFold = string(email), mail.FoldAddress(string(email))
		}
		known.set(c)
	})
	return result(c, err, contactToAPI)
}

// DeleteContact implements DELETE /v1/contacts/{id}.
func (a *API) DeleteContact(ctx context.Context, p gen.DeleteContactParams) (*gen.DeletedContact, error) {
	err := a.store.DeleteContact(ctx, httpapi.Caller(ctx).AccountID, p.ID)
	return &gen.DeletedContact{Object: "contact", ID: p.ID, Deleted: true}, err
}

// UpsertContacts implements POST /v1/contacts/batch.
func (a *API) UpsertContacts(ctx context.Context, req *gen.ContactBatch, _ gen.UpsertContactsParams) (*gen.ContactBatchResult, error) {
	in := make([]store.ContactInput, 0, len(req.Contacts))
	for i := range req.Contacts {
		c, err := contactFromAPI(fieldPath("contacts", i, ""), &req.Contacts[i])
		if err != nil {
			return nil, err
		}
		in = append(in, c)
	}
	toAPI := func(n store.ContactCounts) *gen.ContactBatchResult {
		return &gen.ContactBatchResult{Created: n.Created, Updated: n.Updated}
	}
	n, err := a.store.UpsertContacts(ctx, httpapi.Caller(ctx).AccountID, in, once(ctx, http.StatusOK, "ContactBatchResult", toAPI))
	return result(n, err, toAPI)
}

// contactFields are the fields of a contact request except the address.
type contactFields struct {
	first, last gen.OptNilString
	metadata    json.RawMessage // nil if absent
	tags        store.Labels    // nil if absent
}

// label reads metadata and tags. place is the prefix of the field names.
func (f *contactFields) label(place string, metadata gen.OptFreeObject, tags gen.OptTags) (err error) {
	if v, ok := tags.Get(); ok {
		if f.tags, err = tagsFromAPI(place, v); err != nil {
			return err
		}
	}
	if v, ok := metadata.Get(); ok {
		f.metadata, err = metadataJSON(place+"metadata", v)
	}
	return err
}

// set applies the fields in the request and leaves the others unchanged.
func (f *contactFields) set(c *store.Contact) {
	if f.first.Set {
		c.FirstName = nilOrText(f.first)
	}
	if f.last.Set {
		c.LastName = nilOrText(f.last)
	}
	if f.metadata != nil {
		c.Metadata.V = f.metadata
	}
	if f.tags != nil {
		c.Tags.V = f.tags
	}
}

// contactFromAPI reads a contact. place is the prefix of its field names.
func contactFromAPI(place string, req *gen.ContactCreate) (store.ContactInput, error) {
	email := string(req.Email)
	if err := mail.ValidAddress(email); err != nil {
		return store.ContactInput{}, httpapi.Invalid(place+"email", "%s", err)
	}
	known := contactFields{first: req.FirstName, last: req.LastName}
	err := known.label(place, req.Metadata, req.Tags)
	return store.ContactInput{Email: email, EmailFold: mail.FoldAddress(email), Edit: known.set}, err
}

func contactToAPI(c store.Contact) *gen.Contact {
	return &gen.Contact{
		Object: "contact", ID: c.ID, Email: c.Email, FirstName: nilString(c.FirstName), LastName: nilString(c.LastName),
		Metadata: metadataToAPI(c.Metadata.V), Tags: labelsToAPI(c.Tags.V), CreatedAt: c.CreatedAt.Time, UpdatedAt: c.UpdatedAt.Time,
	}
}
