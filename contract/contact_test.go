package contract_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// contact has the contact fields that the tests read.
type contact struct {
	ID        string            `json:"id"`
	Email     string            `json:"email"`
	FirstName *string           `json:"first_name"`
	Tags      map[string]string `json:"tags"`
}

var contactCount atomic.Int64

// newContact creates a contact with a unique address.
func (w *world) newContact(t *testing.T) contact {
	t.Helper()
	body := fmt.Sprintf(`{"email":"contact%d@example.com","first_name":"Ana"}`, contactCount.Add(1))
	return read[contact](t, w.send(t, w.call("createContact").saying(body)).want(t, http.StatusCreated))
}

// forgetContacts deletes the contacts that examples and mutants create, so that
// their addresses can be used again.
func (w *world) forgetContacts(t *testing.T) {
	t.Helper()
	for _, email := range []string{"ana@example.org", "ben@example.org"} {
		list := read[page](t, w.send(t, w.call("listContacts").asking("email", email)).want(t, http.StatusOK))
		for _, c := range list.Data {
			w.send(t, w.call("deleteContact").at("/v1/contacts/"+c.ID)).want(t, http.StatusOK)
		}
	}
}

// contacts creates, changes, upserts, finds and deletes contacts.
func contacts(t *testing.T, w *world) {
	first, second := w.newContact(t), w.newContact(t)
	path := "/v1/contacts/" + first.ID
	upper := `{"email":"CONTACT` + first.Email[len("contact"):] + `"}`
	w.send(t, w.call("createContact").saying(upper)).wantCode(t, http.StatusConflict, "contact_exists")
	w.send(t, w.call("updateContact").at(path).saying(`{"email":"`+second.Email+`"}`)).wantCode(t, http.StatusConflict, "contact_exists")
	w.send(t, w.call("updateContact").at(path).saying(upper)).want(t, http.StatusOK)

	batch := `{"contacts":[{"email":"` + first.Email + `","first_name":"lost"},{"email":"` + first.Email + `","tags":{"a":"b"}},{"email":"x` + first.Email + `"}]}`
	got := read[map[string]int](t, w.send(t, w.call("upsertContacts").saying(batch)).want(t, http.StatusOK))
	if len(got) != 2 || got["created"] != 1 || got["updated"] != 1 {
		t.Errorf("response to the batch: %v", got)
	}
	c := read[contact](t, w.send(t, w.call("getContact").at(path)).want(t, http.StatusOK))
	if c.FirstName == nil || *c.FirstName != "Ana" || c.Tags["a"] != "b" {
		t.Errorf("after the batch: %+v", c)
	}
	list := read[page](t, w.send(t, w.call("listContacts").asking("email", second.Email)).want(t, http.StatusOK))
	if len(list.Data) != 1 || list.Data[0].ID != second.ID {
		t.Errorf("found %+v", list)
	}
	w.send(t, w.call("deleteContact").at(path)).want(t, http.StatusOK)
	w.send(t, w.call("getContact").at(path)).wantCode(t, http.StatusNotFound, "not_found")
}
